# web3.py as it comes, over HTTP and a WebSocket: calls, batches, a transaction, filters and subscriptions. Speaks the protocol of protocol.ts.
import asyncio
import json
import os
import sys
import threading
import time

from eth_account import Account
from web3 import AsyncWeb3, HTTPProvider, Web3, WebSocketProvider

TASK = json.loads(sys.argv[1])
EMITTER = Web3.to_checksum_address(TASK["emitter"])
ACCOUNT = Account.from_key(TASK["key"])
ATTEMPT_S = 45
BATCH = 100


def tell(feature, wire, status, note=""):
    print(json.dumps({"feature": feature, "wire": wire, "status": status, "note": " ".join(str(note).split())[:160]}), flush=True)


def expect(holds, what):
    if not holds:
        raise Exception(what)


def text_of(hash):
    text = hash.hex()
    return text if text.startswith("0x") else "0x" + text


def address_of(n):
    return Web3.to_checksum_address("0x" + format(n, "040x"))


def transaction(w3_values, to):
    nonce, gas_price = w3_values
    fees = {"maxFeePerGas": gas_price * 2, "maxPriorityFeePerGas": 1_000_000_000}
    return ACCOUNT.sign_transaction({"to": to, "value": 0, "gas": 200_000, "nonce": nonce, "chainId": 31337, **fees}).raw_transaction


class Watched:
    def __init__(self, feature, wire):
        self.feature, self.wire, self.seen, self.errors = feature, wire, [], []


# HTTP, with the ordinary interface.


def attempt(feature, wire, run):
    try:
        tell(feature, wire, "ok", run() or "")
    except Exception as error:
        tell(feature, wire, "fails", error)


def poll(filter, wanted, deadline):
    seen = []
    while wanted not in seen:
        expect(time.monotonic() < deadline, "an event did not come in time")
        seen += [text_of(it["transactionHash"]) if hasattr(it, "keys") else text_of(it) for it in filter.get_new_entries()]
        time.sleep(0.1)
    return seen


def http_calls(w3):
    def basics():
        height = w3.eth.block_number
        expect(w3.eth.chain_id == 31337 and w3.eth.get_balance(ACCOUNT.address) > 0, "wrong answers")
        expect(len(w3.eth.get_code(EMITTER)) > 0 and w3.eth.get_block(height)["number"] == height, "wrong answers")

    def accounts():
        expect(w3.eth.accounts == [], "not []")

    def send(to):
        raw = transaction((w3.eth.get_transaction_count(ACCOUNT.address), w3.eth.gas_price), to)
        return w3.eth.wait_for_transaction_receipt(w3.eth.send_raw_transaction(raw), timeout=30)

    def sending():
        expect(send(ACCOUNT.address)["status"] == 1, "the transaction failed")

    def batch():
        with w3.batch_requests() as requests:
            for n in range(BATCH):
                requests.add(w3.eth.get_balance(address_of(n + 1)))
            expect(requests.execute() == [0] * BATCH, "calls are missing")
        return f"{BATCH} calls in one batch"

    def filters():
        deadline = time.monotonic() + ATTEMPT_S
        blocks, logs, pending = w3.eth.filter("latest"), w3.eth.filter({"address": EMITTER}), w3.eth.filter("pending")
        receipt = send(EMITTER)
        hash = text_of(receipt["transactionHash"])
        poll(blocks, text_of(receipt["blockHash"]), deadline)
        poll(pending, hash, deadline)
        expect(poll(logs, hash, deadline).count(hash) == 1, "the log came more than once")
        logs.get_all_entries()
        for it in (blocks, logs, pending):
            expect(w3.eth.uninstall_filter(it.filter_id), "not uninstalled")

    attempt("basics", "http", basics)
    attempt("accounts", "http", accounts)
    attempt("transaction", "http", sending)
    attempt("batch", "http", batch)
    attempt("filters", "http", filters)


def watch_http(w3):
    def start(feature, of, arguments):
        watched = Watched(feature, "http")

        def run(filter):
            while True:
                try:
                    watched.seen += [of(it) for it in filter.get_new_entries()]
                except Exception as error:
                    watched.errors.append(str(error))
                time.sleep(0.2)

        try:
            threading.Thread(target=run, args=(w3.eth.filter(arguments),), daemon=True).start()
        except Exception as error:
            watched.errors.append(str(error))
        return watched

    return [
        start("blocks", text_of, "latest"),
        start("logs", lambda it: text_of(it["transactionHash"]), {"address": EMITTER}),
        start("pending", text_of, "pending"),
    ]


# WebSocket, with the asynchronous interface.


async def attempt_ws(feature, run):
    try:
        tell(feature, "ws", "ok", await asyncio.wait_for(run(), ATTEMPT_S) or "")
    except Exception as error:
        tell(feature, "ws", "fails", repr(error))


async def ws_calls(w3):
    async def basics():
        height = await w3.eth.block_number
        expect(await w3.eth.chain_id == 31337 and await w3.eth.get_balance(ACCOUNT.address) > 0, "wrong answers")
        expect((await w3.eth.get_block(height))["number"] == height, "wrong answers")

    async def accounts():
        expect(await w3.eth.accounts == [], "not []")

    async def send(to):
        raw = transaction((await w3.eth.get_transaction_count(ACCOUNT.address), await w3.eth.gas_price), to)
        return await w3.eth.wait_for_transaction_receipt(await w3.eth.send_raw_transaction(raw), timeout=30)

    async def sending():
        expect((await send(ACCOUNT.address))["status"] == 1, "the transaction failed")

    async def batch():
        async with w3.batch_requests() as requests:
            for n in range(BATCH):
                requests.add(w3.eth.get_balance(address_of(n + 1)))
            expect(list(await requests.async_execute()) == [0] * BATCH, "calls are missing")
        return f"{BATCH} calls in one batch"

    async def filters():
        async def ask(method, params):
            answer = await w3.provider.make_request(method, params)
            expect("result" in answer, str(answer.get("error")))
            return answer["result"]

        async def changes(filter, wanted, of):
            seen = []
            while wanted not in seen:
                seen += [of(it) for it in await ask("eth_getFilterChanges", [filter])]
                await asyncio.sleep(0.1)
            return seen

        blocks, logs = await ask("eth_newBlockFilter", []), await ask("eth_newFilter", [{"address": EMITTER}])
        pending = await ask("eth_newPendingTransactionFilter", [])
        receipt = await send(EMITTER)
        hash = text_of(receipt["transactionHash"])
        await changes(blocks, text_of(receipt["blockHash"]), str)
        await changes(pending, hash, str)
        expect((await changes(logs, hash, lambda it: it["transactionHash"])).count(hash) == 1, "the log came more than once")
        for it in (blocks, logs, pending):
            expect(await ask("eth_uninstallFilter", [it]), "not uninstalled")
        return "raw calls: web3.py has no filters on a socket"

    await attempt_ws("basics", basics)
    await attempt_ws("accounts", accounts)
    await attempt_ws("transaction", sending)
    await attempt_ws("batch", batch)
    await attempt_ws("filters", filters)


async def watch_ws(w3):
    kinds = {
        "blocks": (("newHeads",), lambda it: it["number"]),
        "logs": (("logs", {"address": EMITTER}), lambda it: text_of(it["transactionHash"])),
        "pending": (("newPendingTransactions",), lambda it: text_of(it)),
    }
    watched, by_id = [], {}
    for feature, (arguments, of) in kinds.items():
        one = Watched(feature, "ws")
        watched.append(one)
        try:
            by_id[await asyncio.wait_for(w3.eth.subscribe(*arguments), ATTEMPT_S)] = (one, of)
        except Exception as error:
            one.errors.append(repr(error))

    async def listen():
        try:
            async for message in w3.socket.process_subscriptions():
                one, of = by_id[message["subscription"]]
                one.seen.append(of(message["result"]))
        except Exception as error:
            for one in watched:
                one.errors.append(repr(error))

    listening = asyncio.create_task(listen())
    return watched, listening


async def judge_one(watched, expected):
    numbers, hashes = [it["number"] for it in expected["blocks"]], [it["hash"] for it in expected["blocks"]]
    isBlocks = watched.feature == "blocks"
    wanted = (hashes if watched.seen and isinstance(watched.seen[0], str) else numbers) if isBlocks else expected["transactions"]
    known = set(numbers + hashes) if isBlocks else set(wanted)
    deadline = time.monotonic() + ATTEMPT_S
    got = [it for it in watched.seen if it in known]
    while len(got) < len(wanted) and time.monotonic() < deadline:
        await asyncio.sleep(0.05)
        got = [it for it in watched.seen if it in known]
    if isBlocks and got and isinstance(got[0], str):
        wanted = hashes
    missing, repeated = len([it for it in wanted if it not in got]), len(got) - len(set(got))
    problems = [] if missing == 0 else [f"{missing} of {len(wanted)} missing"]
    problems += [] if repeated == 0 else [f"{repeated} repeated"]
    if watched.feature != "pending" and [it for it in wanted if it in got] != list(dict.fromkeys(got)):
        problems.append("out of order")
    tell(watched.feature, watched.wire, "fails" if problems else "ok", "; ".join(problems + (watched.errors[:1] if problems else [])))


async def main():
    if not TASK["failover"]:
        http_calls(Web3(HTTPProvider(TASK["http"])))
        async with AsyncWeb3(WebSocketProvider(TASK["ws"])) as ws:
            await ws_calls(ws)
    async with AsyncWeb3(WebSocketProvider(TASK["watchWs"])) as ws:
        watched, listening = await watch_ws(ws)
        watched = watch_http(Web3(HTTPProvider(TASK["watchHttp"]))) + watched
        print("READY", flush=True)
        line = await asyncio.to_thread(sys.stdin.readline)
        expected = json.loads(line[len("CHECK ") :])
        await asyncio.gather(*(judge_one(it, expected) for it in watched))
        listening.cancel()
        # Closing the socket raises whatever error some call got before; those have been told.
        sys.stdout.flush()
        os._exit(0)


asyncio.run(main())
