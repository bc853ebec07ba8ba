// The rounds of ethclient, as rounds.ts has them: every value that one node alone would not have said is counted by kind.
package main

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/accounts/abi/bind"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
)

const (
	receiptTime = 10 * time.Second
	maxLost     = 10
	leastGas    = 25_000
	askTime     = 15 * time.Second
)

type roundsTask struct {
	Feature, Wire, Url, Key, Bytecode string
	Count                             int
}

type rounds struct {
	task     roundsTask
	eth      *ethclient.Client
	signer   func(ctx context.Context, nonce uint64, to *common.Address, data []byte) (*types.Transaction, error)
	from     common.Address
	contract common.Address
	sent     uint64
	counted  uint64
	height   uint64
	lost     int

	lock       sync.Mutex
	wrong      map[string]int
	firstError string
}

func (r *rounds) note(kind string, count int) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.wrong[kind] += count
}

func (r *rounds) failed(kind string, err error) {
	r.note(kind, 1)
	r.lock.Lock()
	defer r.lock.Unlock()
	if r.firstError == "" {
		r.firstError = err.Error()[:min(80, len(err.Error()))]
	}
}

func (r *rounds) check(kind string, holds func(ctx context.Context) (bool, error)) {
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	right, err := holds(ctx)
	if err != nil && !errors.Is(err, ethereum.NotFound) {
		r.failed(kind+": error", err)
	} else if !right {
		r.note(kind, 1)
	}
}

func (r *rounds) nonce(ctx context.Context, tag string) (uint64, error) {
	if tag == "pending" {
		return r.eth.PendingNonceAt(ctx, r.from)
	}
	return r.eth.NonceAt(ctx, r.from, nil)
}

func (r *rounds) isNonce(tag string) func(ctx context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		nonce, err := r.nonce(ctx, tag)
		return nonce == r.sent, err
	}
}

func (r *rounds) transact(to *common.Address, data []byte) *types.Receipt {
	ctx, cancel := context.WithTimeout(context.Background(), attemptTime)
	defer cancel()
	nonce, err := r.nonce(ctx, "pending")
	if err != nil {
		r.failed("pending nonce: error", err)
		nonce = r.sent
	} else if nonce != r.sent {
		r.note("pending nonce", 1)
	}
	r.check("latest nonce", r.isNonce("latest"))
	transaction, err := r.signer(ctx, nonce, to, data)
	if err == nil {
		err = r.eth.SendTransaction(ctx, transaction)
	}
	if err != nil {
		kind := "not sent"
		if strings.Contains(err.Error(), "nonce too") {
			kind = "nonce error"
		}
		r.failed(kind, err)
		return r.recover(to, data)
	}
	r.check("transaction not found", func(ctx context.Context) (bool, error) {
		_, _, err := r.eth.TransactionByHash(ctx, transaction.Hash())
		return err == nil, err
	})
	receipt, err := r.wait(transaction)
	if err != nil {
		r.failed("no receipt", err)
		r.lost++
		return r.recover(to, data)
	}
	r.sent++
	if receipt.Status != 1 {
		r.note("transaction reverted", 1)
	}
	return receipt
}

func (r *rounds) wait(transaction *types.Transaction) (*types.Receipt, error) {
	ctx, cancel := context.WithTimeout(context.Background(), receiptTime)
	defer cancel()
	return bind.WaitMined(ctx, r.eth, transaction)
}

func (r *rounds) recover(to *common.Address, data []byte) *types.Receipt {
	ctx, cancel := context.WithTimeout(context.Background(), attemptTime)
	defer cancel()
	for deadline := time.Now().Add(receiptTime); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		var receipt *types.Receipt
		transaction, err := r.signer(ctx, r.sent, to, data)
		if err == nil && r.eth.SendTransaction(ctx, transaction) == nil {
			receipt, _ = r.wait(transaction)
		}
		nonce, _ := r.nonce(ctx, "latest")
		if receipt != nil || nonce > r.sent {
			r.sent++
			if receipt == nil && to != nil {
				r.counted++
			}
			return receipt
		}
	}
	return nil
}

func (r *rounds) readAfter(receipt *types.Receipt) {
	logsOf := func(last *big.Int) func(ctx context.Context) (bool, error) {
		query := ethereum.FilterQuery{Addresses: []common.Address{r.contract}, FromBlock: receipt.BlockNumber, ToBlock: last}
		return func(ctx context.Context) (bool, error) {
			logs, err := r.eth.FilterLogs(ctx, query)
			return uint64(len(logs)) == min(1, r.counted), err
		}
	}
	all := map[string]func(ctx context.Context) (bool, error){
		"block number": func(ctx context.Context) (bool, error) {
			height, err := r.eth.BlockNumber(ctx)
			if err == nil && height < r.height {
				r.note("block number went back", 1)
			}
			r.height = max(r.height, height)
			return height >= receipt.BlockNumber.Uint64(), err
		},
		"block by number": func(ctx context.Context) (bool, error) {
			header, err := r.eth.HeaderByNumber(ctx, receipt.BlockNumber)
			return err == nil && header.Hash() == receipt.BlockHash, err
		},
		"block by hash": func(ctx context.Context) (bool, error) {
			header, err := r.eth.HeaderByHash(ctx, receipt.BlockHash)
			return err == nil && header.Hash() == receipt.BlockHash, err
		},
		"count": func(ctx context.Context) (bool, error) {
			data, err := r.eth.CallContract(ctx, ethereum.CallMsg{To: &r.contract}, nil)
			return len(data) > 0 && new(big.Int).SetBytes(data).Uint64() == r.counted, err
		},
		"no code": func(ctx context.Context) (bool, error) {
			code, err := r.eth.CodeAt(ctx, r.contract, nil)
			return len(code) > 0, err
		},
		"latest nonce":   r.isNonce("latest"),
		"pending nonce":  r.isNonce("pending"),
		"logs of block":  logsOf(receipt.BlockNumber),
		"logs to latest": logsOf(nil),
		"estimate": func(ctx context.Context) (bool, error) {
			gas, err := r.eth.EstimateGas(ctx, ethereum.CallMsg{From: r.from, To: &r.contract, Data: []byte{1}})
			return gas > leastGas, err
		},
	}
	var group sync.WaitGroup
	for kind, holds := range all {
		group.Add(1)
		go func() {
			defer group.Done()
			r.check(kind, holds)
		}()
	}
	group.Wait()
}

// One head at a time is looked into; those that come meanwhile are not.
func (r *rounds) watchHeads(stop chan struct{}, done chan struct{}) error {
	heads := make(chan *types.Header, 1)
	subscription, err := r.eth.SubscribeNewHead(context.Background(), heads)
	if err != nil {
		return err
	}
	latest := make(chan *types.Header, 1)
	go func() {
		for {
			select {
			case head := <-heads:
				select {
				case latest <- head:
				default:
				}
			case err := <-subscription.Err():
				if err != nil {
					r.failed("head: error", err)
				}
				return
			}
		}
	}()
	go func() {
		defer close(done)
		defer subscription.Unsubscribe()
		for {
			select {
			case head := <-latest:
				r.check("head: block number", func(ctx context.Context) (bool, error) {
					height, err := r.eth.BlockNumber(ctx)
					return height >= head.Number.Uint64(), err
				})
				r.check("head: block", func(ctx context.Context) (bool, error) {
					_, err := r.eth.HeaderByHash(ctx, head.Hash())
					return err == nil, err
				})
			case <-stop:
				return
			}
		}
	}()
	return nil
}

func (r *rounds) run() error {
	stop, done := make(chan struct{}), make(chan struct{})
	if r.task.Wire == "ws" {
		if err := r.watchHeads(stop, done); err != nil {
			return err
		}
	} else {
		close(done)
	}
	deployed := r.transact(nil, common.FromHex(r.task.Bytecode))
	finished := 0
	if deployed != nil {
		r.contract = deployed.ContractAddress
		r.readAfter(deployed)
	}
	for deployed != nil && finished < r.task.Count && r.lost < maxLost {
		receipt := r.transact(&r.contract, common.BigToHash(big.NewInt(int64(finished+1))).Bytes())
		if receipt == nil {
			r.lost++
		} else {
			r.counted += receipt.Status
			r.readAfter(receipt)
		}
		finished++
	}
	if finished < r.task.Count {
		r.note("rounds left out", r.task.Count-finished)
	}
	close(stop)
	<-done
	r.tell(finished)
	return nil
}

func (r *rounds) tell(finished int) {
	var kinds []string
	for kind := range r.wrong {
		kinds = append(kinds, kind)
	}
	sort.Slice(kinds, func(a, b int) bool { return r.wrong[kinds[a]] > r.wrong[kinds[b]] })
	for n, kind := range kinds {
		kinds[n] = fmt.Sprintf("%s %d", kind, r.wrong[kind])
	}
	if len(kinds) == 0 {
		tell(r.task.Feature, r.task.Wire, "ok", fmt.Sprintf("%d rounds", finished))
		return
	}
	note := fmt.Sprintf("%d rounds: %s", finished, strings.Join(kinds, ", "))
	if r.firstError != "" {
		note += fmt.Sprintf(" (%s)", r.firstError)
	}
	tell(r.task.Feature, r.task.Wire, "fails", note)
}

func roundsOf(task roundsTask) error {
	eth, err := ethclient.Dial(task.Url)
	if err != nil {
		return err
	}
	defer eth.Close()
	key, err := crypto.HexToECDSA(strings.TrimPrefix(task.Key, "0x"))
	if err != nil {
		return err
	}
	from := crypto.PubkeyToAddress(key.PublicKey)
	sign := func(ctx context.Context, nonce uint64, to *common.Address, data []byte) (*types.Transaction, error) {
		price, err := eth.SuggestGasPrice(ctx)
		if err != nil {
			return nil, err
		}
		gas, err := eth.EstimateGas(ctx, ethereum.CallMsg{From: from, To: to, Data: data})
		if err != nil {
			return nil, err
		}
		fields := &types.DynamicFeeTx{ChainID: big.NewInt(31337), Nonce: nonce, To: to, Gas: gas, Data: data, GasTipCap: big.NewInt(1e9), GasFeeCap: price.Mul(price, big.NewInt(2))}
		return types.SignNewTx(key, types.LatestSignerForChainID(big.NewInt(31337)), fields)
	}
	return (&rounds{task: task, eth: eth, signer: sign, from: from, wrong: map[string]int{}}).run()
}

// Runs all of them at once.
func allRounds(tasks []roundsTask) {
	var group sync.WaitGroup
	for _, task := range tasks {
		group.Add(1)
		go func() {
			defer group.Done()
			if err := roundsOf(task); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}()
	}
	group.Wait()
}
