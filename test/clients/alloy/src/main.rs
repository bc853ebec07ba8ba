// alloy as it comes, over HTTP and a WebSocket: calls, batches, a transaction and subscriptions.
// Speaks the protocol of protocol.ts.
use std::{future::Future, sync::Arc, time::Duration};

use alloy::{
    network::{EthereumWallet, TransactionBuilder},
    primitives::{Address, B256, U256},
    providers::{DynProvider, Provider, ProviderBuilder, WsConnect},
    rpc::{client::BatchRequest, types::{Filter, TransactionRequest}},
    signers::local::PrivateKeySigner,
};
use futures_util::{StreamExt, future::try_join_all};
use serde::Deserialize;
use serde_json::json;
use tokio::{io::AsyncBufReadExt, sync::Mutex, time::{sleep, timeout}};

type Problem = Box<dyn std::error::Error + Send + Sync>;
type Done<T> = Result<T, Problem>;

const ATTEMPT: Duration = Duration::from_secs(45);
const BATCH: u64 = 100;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Task {
    http: String,
    ws: String,
    watch_ws: String,
    emitter: Address,
    key: String,
    failover: bool,
    rounds: Vec<serde_json::Value>,
}

#[derive(Deserialize)]
struct Block {
    number: u64,
}

#[derive(Deserialize)]
struct Expected {
    blocks: Vec<Block>,
    transactions: Vec<B256>,
}

#[derive(Default)]
struct Watched {
    seen: Mutex<Vec<String>>,
}

fn tell(feature: &str, wire: &str, status: &str, note: &str) {
    let note: String = note.split_whitespace().collect::<Vec<_>>().join(" ");
    let note: String = note.chars().take(160).collect();
    println!("{}", json!({ "feature": feature, "wire": wire, "status": status, "note": note }));
}

async fn attempt(feature: &str, wire: &str, run: impl Future<Output = Done<String>>) {
    match timeout(ATTEMPT, run).await {
        Err(_) => tell(feature, wire, "fails", "not done within 45 s"),
        Ok(Err(error)) => tell(feature, wire, "fails", &error.to_string()),
        Ok(Ok(note)) => tell(feature, wire, "ok", &note),
    }
}

fn expect(holds: bool, what: &str) -> Done<()> {
    if holds { Ok(()) } else { Err(what.into()) }
}

fn address_of(n: u64) -> Address {
    Address::left_padding_from(&n.to_be_bytes())
}

async fn dial(url: &str, key: &PrivateKeySigner) -> Done<DynProvider> {
    let builder = ProviderBuilder::new().wallet(EthereumWallet::from(key.clone()));
    Ok(if url.starts_with("ws") {
        builder.connect_ws(WsConnect::new(url)).await?.erased()
    } else {
        builder.connect_http(url.parse()?).erased()
    })
}

async fn calls(wire: &str, provider: &DynProvider, own: Address, task: &Task) {
    attempt("basics", wire, async {
        let height = provider.get_block_number().await?;
        let block = provider.get_block_by_number(height.into()).await?;
        let code = provider.get_code_at(task.emitter).await?;
        expect(provider.get_chain_id().await? == 31337, "a wrong chain id")?;
        expect(provider.get_balance(own).await? > U256::ZERO, "no balance")?;
        expect(!code.is_empty() && block.is_some_and(|it| it.header.number == height), "wrong answers")?;
        Ok(String::new())
    })
    .await;
    attempt("accounts", wire, async {
        expect(provider.get_accounts().await?.is_empty(), "not []")?;
        Ok(String::new())
    })
    .await;
    attempt("transaction", wire, async {
        let request = TransactionRequest::default().with_to(own).with_value(U256::from(1));
        let sent = provider.send_transaction(request).await?;
        expect(sent.get_receipt().await?.status(), "the transaction failed")?;
        Ok(String::new())
    })
    .await;
    attempt("batch", wire, async {
        let mut batch = BatchRequest::new(provider.client());
        let mut waiting = Vec::new();
        for n in 1..=BATCH {
            waiting.push(batch.add_call::<_, U256>("eth_getBalance", &(address_of(n), "latest"))?);
        }
        batch.send().await?;
        for balance in try_join_all(waiting).await? {
            expect(balance == U256::ZERO, "a wrong balance")?;
        }
        Ok(format!("{BATCH} calls in one batch"))
    })
    .await;
    attempt("at once", wire, async {
        let count = if wire == "http" { 100 } else { 500 };
        let asked = (1..=count).map(|n| async move { provider.get_balance(address_of(n)).await });
        for balance in try_join_all(asked).await? {
            expect(balance == U256::ZERO, "a wrong balance")?;
        }
        Ok(format!("{count} calls at once"))
    })
    .await;
    attempt("filters", wire, async {
        let blocks = provider.new_block_filter().await?;
        let logs = provider.new_filter(&Filter::new().address(task.emitter)).await?;
        let request = TransactionRequest::default().with_to(task.emitter).with_gas_limit(200_000);
        let receipt = provider.send_transaction(request).await?.get_receipt().await?;
        let (mut is_block, mut count) = (false, 0);
        while !is_block || count == 0 {
            let hashes: Vec<B256> = provider.get_filter_changes(blocks).await?;
            is_block |= hashes.iter().any(|it| Some(*it) == receipt.block_hash);
            let events: Vec<alloy::rpc::types::Log> = provider.get_filter_changes(logs).await?;
            let own = |it: &&alloy::rpc::types::Log| it.transaction_hash == Some(receipt.transaction_hash);
            count += events.iter().filter(own).count();
            sleep(Duration::from_millis(100)).await;
        }
        expect(count == 1, "the log came more than once")?;
        expect(provider.uninstall_filter(blocks).await?, "not uninstalled")?;
        expect(provider.uninstall_filter(logs).await?, "not uninstalled")?;
        Ok(String::new())
    })
    .await;
}

/// Collects what a subscription tells.
fn collect<T: Send + 'static>(
    stream: impl futures_util::Stream<Item = T> + Send + Unpin + 'static,
    text: impl Fn(T) -> Option<String> + Send + 'static,
) -> Arc<Watched> {
    let watched = Arc::new(Watched::default());
    let kept = watched.clone();
    tokio::spawn(async move {
        let mut stream = stream;
        while let Some(event) = stream.next().await {
            if let Some(seen) = text(event) {
                kept.seen.lock().await.push(seen);
            }
        }
    });
    watched
}

async fn judge(feature: &str, watched: &Watched, wanted: &[String]) {
    let give_up = tokio::time::Instant::now() + ATTEMPT;
    let known = |seen: &[String]| -> Vec<String> {
        seen.iter().filter(|it| wanted.contains(it)).cloned().collect()
    };
    let found = loop {
        let found = known(&watched.seen.lock().await);
        if found.len() >= wanted.len() || tokio::time::Instant::now() > give_up {
            break found;
        }
        sleep(Duration::from_millis(50)).await;
    };
    let missing = wanted.iter().filter(|it| !found.contains(it)).count();
    let is_in_order = feature == "pending" || found == wanted;
    if missing > 0 {
        tell(feature, "ws", "fails", &format!("{missing} of {} missing", wanted.len()));
    } else if found.len() > wanted.len() || !is_in_order {
        tell(feature, "ws", "fails", "repeated or out of order");
    } else {
        tell(feature, "ws", "ok", "");
    }
}

#[tokio::main]
async fn main() -> Done<()> {
    let given = std::env::args().nth(1).ok_or("no task")?;
    let task: Task = serde_json::from_str(&given)?;
    if !task.rounds.is_empty() {
        return Ok(());
    }
    let key: PrivateKeySigner = task.key.parse()?;
    if !task.failover {
        for (wire, url) in [("http", &task.http), ("ws", &task.ws)] {
            calls(wire, &dial(url, &key).await?, key.address(), &task).await;
        }
    }
    for feature in ["blocks", "logs", "pending"] {
        tell(feature, "http", "not run", "polled by filters, which are tried above");
    }
    let provider = dial(&task.watch_ws, &key).await?;
    let filter = Filter::new().address(task.emitter);
    let blocks = collect(provider.subscribe_blocks().await?.into_stream(), |it| Some(it.number.to_string()));
    let logs = collect(provider.subscribe_logs(&filter).await?.into_stream(), |it| {
        it.transaction_hash.map(|hash| hash.to_string())
    });
    let pending =
        collect(provider.subscribe_pending_transactions().await?.into_stream(), |it| Some(it.to_string()));
    println!("READY");
    let mut line = String::new();
    tokio::io::BufReader::new(tokio::io::stdin()).read_line(&mut line).await?;
    let expected: Expected = serde_json::from_str(line.trim_start_matches("CHECK "))?;
    let numbers: Vec<String> = expected.blocks.iter().map(|it| it.number.to_string()).collect();
    let hashes: Vec<String> = expected.transactions.iter().map(|it| it.to_string()).collect();
    tokio::join!(
        judge("blocks", &blocks, &numbers),
        judge("logs", &logs, &hashes),
        judge("pending", &pending, &hashes),
    );
    Ok(())
}
