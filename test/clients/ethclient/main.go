// go-ethereum's ethclient as it comes, over HTTP and a WebSocket: calls, batches, a transaction, subscriptions, and filters by raw calls.
// Speaks the protocol of protocol.ts.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/accounts/abi/bind"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/ethclient/gethclient"
	"github.com/ethereum/go-ethereum/rpc"
)

const attemptTime = 45 * time.Second
const batchSize = 1000

// Single calls that are sent at once, by wire.
var atOnce = map[string]int{"http": 100, "ws": 500}

type task struct {
	Http, Ws, WatchWs, Emitter, Key string
	Failover                        bool
	Rounds                          []roundsTask
}

type expected struct {
	Blocks []struct {
		Number uint64
		Hash   string
	}
	Transactions []string
}

var output sync.Mutex

func tell(feature, wire, status, note string) {
	output.Lock()
	defer output.Unlock()
	note = strings.Join(strings.Fields(note), " ")
	if len(note) > 500 {
		note = note[:500]
	}
	line, _ := json.Marshal(map[string]string{"feature": feature, "wire": wire, "status": status, "note": note})
	fmt.Println(string(line))
}

func attempt(feature, wire string, run func(ctx context.Context) (string, error)) {
	ctx, cancel := context.WithTimeout(context.Background(), attemptTime)
	defer cancel()
	note, err := run(ctx)
	if err != nil {
		tell(feature, wire, "fails", err.Error())
		return
	}
	tell(feature, wire, "ok", note)
}

// What a watcher saw.
type watched struct {
	feature, wire string
	lock          sync.Mutex
	seen          []string
	err           error
}

func (w *watched) add(what string) {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.seen = append(w.seen, what)
}

func (w *watched) fail(err error) {
	w.lock.Lock()
	defer w.lock.Unlock()
	if w.err == nil {
		w.err = err
	}
}

type caller struct {
	wire   string
	rpc    *rpc.Client
	eth    *ethclient.Client
	signer func(ctx context.Context, to common.Address) (*types.Receipt, error)
}

func dial(wire, url, keyText string) (*caller, error) {
	client, err := rpc.Dial(url)
	if err != nil {
		return nil, err
	}
	eth := ethclient.NewClient(client)
	key, err := crypto.HexToECDSA(strings.TrimPrefix(keyText, "0x"))
	if err != nil {
		return nil, err
	}
	from := crypto.PubkeyToAddress(key.PublicKey)
	send := func(ctx context.Context, to common.Address) (*types.Receipt, error) {
		nonce, err := eth.PendingNonceAt(ctx, from)
		if err != nil {
			return nil, err
		}
		price, err := eth.SuggestGasPrice(ctx)
		if err != nil {
			return nil, err
		}
		fields := &types.DynamicFeeTx{ChainID: big.NewInt(31337), Nonce: nonce, To: &to, Gas: 200000, GasTipCap: big.NewInt(1e9), GasFeeCap: price.Mul(price, big.NewInt(2))}
		transaction, err := types.SignNewTx(key, types.LatestSignerForChainID(big.NewInt(31337)), fields)
		if err != nil {
			return nil, err
		}
		if err := eth.SendTransaction(ctx, transaction); err != nil {
			return nil, err
		}
		return bind.WaitMined(ctx, eth, transaction)
	}
	return &caller{wire, client, eth, send}, nil
}

func (c *caller) calls(emitter common.Address) {
	attempt("basics", c.wire, func(ctx context.Context) (string, error) {
		id, err := c.eth.ChainID(ctx)
		if err != nil || id.Int64() != 31337 {
			return "", fmt.Errorf("chain id %v: %v", id, err)
		}
		height, err := c.eth.BlockNumber(ctx)
		if err != nil {
			return "", err
		}
		header, err := c.eth.HeaderByNumber(ctx, new(big.Int).SetUint64(height))
		if err != nil {
			return "", err
		}
		code, err := c.eth.CodeAt(ctx, emitter, nil)
		if err != nil || len(code) == 0 || header.Number.Uint64() != height {
			return "", fmt.Errorf("wrong answers: %v", err)
		}
		return "", nil
	})
	attempt("accounts", c.wire, func(ctx context.Context) (string, error) {
		var accounts []common.Address
		if err := c.rpc.CallContext(ctx, &accounts, "eth_accounts"); err != nil {
			return "", err
		}
		if len(accounts) > 0 {
			return "", fmt.Errorf("not []")
		}
		return "", nil
	})
	attempt("transaction", c.wire, func(ctx context.Context) (string, error) {
		receipt, err := c.signer(ctx, emitter)
		if err == nil && receipt.Status != 1 {
			err = fmt.Errorf("the transaction failed")
		}
		return "", err
	})
	attempt("batch", c.wire, func(ctx context.Context) (string, error) {
		batch := make([]rpc.BatchElem, batchSize)
		for n := range batch {
			address := common.BigToAddress(big.NewInt(int64(n + 1)))
			batch[n] = rpc.BatchElem{Method: "eth_getBalance", Args: []any{address, "latest"}, Result: new(hexutil.Big)}
		}
		if err := c.rpc.BatchCallContext(ctx, batch); err != nil {
			return "", err
		}
		for _, element := range batch {
			if element.Error != nil {
				return "", element.Error
			}
		}
		return fmt.Sprintf("%d calls in one batch", batchSize), nil
	})
	attempt("at once", c.wire, func(ctx context.Context) (string, error) {
		count := atOnce[c.wire]
		problems := make(chan error, count)
		for n := range count {
			go func() {
				balance, err := c.eth.BalanceAt(ctx, common.BigToAddress(big.NewInt(int64(n+1))), nil)
				if err == nil && balance.Sign() != 0 {
					err = fmt.Errorf("a wrong balance")
				}
				problems <- err
			}()
		}
		for range count {
			if err := <-problems; err != nil {
				return "", err
			}
		}
		return fmt.Sprintf("%d calls at once", count), nil
	})
	attempt("filters", c.wire, func(ctx context.Context) (string, error) {
		return "raw calls: ethclient has no filters", c.filters(ctx, emitter)
	})
}

func (c *caller) filters(ctx context.Context, emitter common.Address) error {
	ids := map[string]string{}
	for method, args := range map[string][]any{
		"eth_newBlockFilter":              {},
		"eth_newPendingTransactionFilter": {},
		"eth_newFilter":                   {map[string]any{"address": emitter}},
	} {
		var id string
		if err := c.rpc.CallContext(ctx, &id, method, args...); err != nil {
			return err
		}
		ids[method] = id
	}
	receipt, err := c.signer(ctx, emitter)
	if err != nil {
		return err
	}
	wanted := map[string]string{
		"eth_newBlockFilter":              receipt.BlockHash.Hex(),
		"eth_newPendingTransactionFilter": receipt.TxHash.Hex(),
		"eth_newFilter":                   receipt.TxHash.Hex(),
	}
	for method, id := range ids {
		for found := false; !found; {
			var changes []any
			if err := c.rpc.CallContext(ctx, &changes, "eth_getFilterChanges", id); err != nil {
				return err
			}
			for _, change := range changes {
				hash, isText := change.(string)
				if log, isLog := change.(map[string]any); isLog && !isText {
					hash, _ = log["transactionHash"].(string)
				}
				found = found || hash == wanted[method]
			}
			time.Sleep(100 * time.Millisecond)
		}
		var gone bool
		if err := c.rpc.CallContext(ctx, &gone, "eth_uninstallFilter", id); err != nil || !gone {
			return fmt.Errorf("not uninstalled: %v", err)
		}
	}
	return nil
}

func (c *caller) watch(emitter common.Address) []*watched {
	ctx := context.Background()
	blocks := &watched{feature: "blocks", wire: c.wire}
	logs := &watched{feature: "logs", wire: c.wire}
	pending := &watched{feature: "pending", wire: c.wire}
	heads, events, hashes := make(chan *types.Header, 1000), make(chan types.Log, 1000), make(chan common.Hash, 1000)
	keep := func(one *watched, subscription ethereum.Subscription, err error) {
		if err != nil {
			one.fail(err)
			return
		}
		go func() {
			if err := <-subscription.Err(); err != nil {
				one.fail(err)
			}
		}()
	}
	headsOf, err := c.eth.SubscribeNewHead(ctx, heads)
	keep(blocks, headsOf, err)
	logsOf, err := c.eth.SubscribeFilterLogs(ctx, ethereum.FilterQuery{Addresses: []common.Address{emitter}}, events)
	keep(logs, logsOf, err)
	hashesOf, err := gethclient.New(c.rpc).SubscribePendingTransactions(ctx, hashes)
	keep(pending, hashesOf, err)
	go func() {
		for {
			select {
			case head := <-heads:
				blocks.add(head.Number.String())
			case event := <-events:
				logs.add(event.TxHash.Hex())
			case hash := <-hashes:
				pending.add(hash.Hex())
			}
		}
	}()
	return []*watched{blocks, logs, pending}
}

func judge(one *watched, expected expected) {
	wanted := expected.Transactions
	if one.feature == "blocks" {
		wanted = nil
		for _, block := range expected.Blocks {
			wanted = append(wanted, fmt.Sprint(block.Number))
		}
	}
	known := map[string]bool{}
	for _, it := range wanted {
		known[it] = true
	}
	got := func() (found []string) {
		one.lock.Lock()
		defer one.lock.Unlock()
		for _, it := range one.seen {
			if known[it] {
				found = append(found, it)
			}
		}
		return found
	}
	for deadline := time.Now().Add(attemptTime); len(got()) < len(wanted) && time.Now().Before(deadline); {
		time.Sleep(50 * time.Millisecond)
	}
	found := got()
	distinct := map[string]bool{}
	for _, it := range found {
		distinct[it] = true
	}
	var problems []string
	if missing := len(wanted) - len(distinct); missing > 0 {
		problems = append(problems, fmt.Sprintf("%d of %d missing", missing, len(wanted)))
	}
	if repeated := len(found) - len(distinct); repeated > 0 {
		problems = append(problems, fmt.Sprintf("%d repeated", repeated))
	}
	if len(problems) == 0 && one.feature != "pending" && strings.Join(found, " ") != strings.Join(wanted, " ") {
		problems = append(problems, "out of order")
	}
	if len(problems) == 0 {
		tell(one.feature, one.wire, "ok", "")
		return
	}
	if one.err != nil {
		problems = append(problems, one.err.Error())
	}
	tell(one.feature, one.wire, "fails", strings.Join(problems, "; "))
}

func main() {
	var given task
	if err := json.Unmarshal([]byte(os.Args[1]), &given); err != nil {
		panic(err)
	}
	if len(given.Rounds) > 0 {
		allRounds(given.Rounds)
		return
	}
	emitter := common.HexToAddress(given.Emitter)
	socket, err := dial("ws", given.WatchWs, given.Key)
	if err != nil {
		panic(err)
	}
	if !given.Failover {
		for wire, url := range map[string]string{"http": given.Http, "ws": given.Ws} {
			client, err := dial(wire, url, given.Key)
			if err != nil {
				panic(err)
			}
			client.calls(emitter)
		}
	}
	for _, feature := range []string{"blocks", "logs", "pending"} {
		tell(feature, "http", "not run", "ethclient watches over a WebSocket only")
	}
	all := socket.watch(emitter)
	fmt.Println("READY")
	line, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil {
		panic(err)
	}
	var events expected
	if err := json.Unmarshal([]byte(strings.TrimPrefix(line, "CHECK ")), &events); err != nil {
		panic(err)
	}
	var group sync.WaitGroup
	for _, one := range all {
		group.Add(1)
		go func() {
			defer group.Done()
			judge(one, events)
		}()
	}
	group.Wait()
}
