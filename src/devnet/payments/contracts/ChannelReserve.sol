// SPDX-License-Identifier: UNLICENSED
// DEVELOPMENT STAND-IN for the channel reserve of Tempo's T5 fork (TIP-1034), placed at its address on a local chain that ends at T4. It keeps the interface,
// the errors, the signatures and the order of checks; gas, storage credits and virtual addresses are not reproduced. It knows nothing of real money.
//
// Two things differ, because only a precompile can do them: payers must have approved this address, and the hash of the transaction that opens a channel is
// written into `contexts` by whoever makes the blocks, before it makes the one with that transaction.
pragma solidity 0.8.37;

interface Token {
    function transfer(address to, uint256 amount) external returns (bool);
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
}

interface SignatureVerifier {
    function recover(bytes32 hash, bytes calldata signature) external view returns (address signer);
}

contract ChannelReserve {
    struct Descriptor {
        address payer;
        address payee;
        address operator;
        address token;
        bytes32 salt;
        address authorizedSigner;
        bytes32 expiringNonceHash;
    }

    struct State {
        uint96 settled;
        uint96 deposit;
        uint32 closeRequestedAt;
    }

    struct Channel {
        Descriptor descriptor;
        State state;
    }

    // One slot. A channel that has ended keeps nothing but that it was: its identifier cannot come again but within the transaction that opened it.
    struct Stored {
        uint96 settled;
        uint96 deposit;
        uint32 closeRequestedAt;
        bool ended;
    }

    uint64 public constant CLOSE_GRACE_PERIOD = 15 minutes;
    bytes32 public constant VOUCHER_TYPEHASH = keccak256("Voucher(bytes32 channelId,uint96 cumulativeAmount)");
    // Says what this is to whoever looks; the precompile has no such function.
    string public constant DEVELOPMENT_STAND_IN = "development stand-in for the TIP-1034 channel reserve";
    bytes32 private constant DOMAIN_TYPEHASH =
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
    SignatureVerifier private constant VERIFIER = SignatureVerifier(0x5165300000000000000000000000000000000000);

    // Slot 0. By payer and salt: what the precompile learns from its node, keccak256(signed payload of the transaction || sender).
    mapping(address => mapping(bytes32 => bytes32)) public contexts;
    mapping(bytes32 => Stored) private channels;

    event ChannelOpened(
        bytes32 indexed channelId, address indexed payer, address indexed payee, address operator, address token, address authorizedSigner,
        bytes32 salt, bytes32 expiringNonceHash, uint96 deposit
    );
    event Settled(
        bytes32 indexed channelId, address indexed payer, address indexed payee, uint96 cumulativeAmount, uint96 deltaPaid, uint96 newSettled
    );
    event TopUp(bytes32 indexed channelId, address indexed payer, address indexed payee, uint96 additionalDeposit, uint96 newDeposit);
    event CloseRequested(bytes32 indexed channelId, address indexed payer, address indexed payee, uint256 closeGraceEnd);
    event ChannelClosed(bytes32 indexed channelId, address indexed payer, address indexed payee, uint96 settledToPayee, uint96 refundedToPayer);
    event CloseRequestCancelled(bytes32 indexed channelId, address indexed payer, address indexed payee);

    error ChannelAlreadyExists();
    error ChannelNotFound();
    error NotPayer();
    error NotPayeeOrOperator();
    error InvalidPayee();
    error ZeroDeposit();
    error InvalidSignature();
    error AmountExceedsDeposit();
    error AmountNotIncreasing();
    error CaptureAmountInvalid();
    error CloseNotReady();
    error DepositOverflow();

    function open(address payee, address operator, address token, uint96 deposit, bytes32 salt, address authorizedSigner)
        external returns (bytes32 channelId)
    {
        // Zero, or a TIP-20 token: what is sent there is lost.
        if (payee == address(0) || bytes12(bytes20(payee)) == bytes12(0x20c000000000000000000000)) revert InvalidPayee();
        if (deposit == 0) revert ZeroDeposit();
        // Zero while it is only simulated: then the identifier is not the one that the channel will have.
        bytes32 context = contexts[msg.sender][salt];
        channelId = computeChannelId(msg.sender, payee, operator, token, salt, authorizedSigner, context);
        if (channels[channelId].deposit != 0 || channels[channelId].ended) revert ChannelAlreadyExists();
        Token(token).transferFrom(msg.sender, address(this), deposit);
        channels[channelId] = Stored(0, deposit, 0, false);
        emit ChannelOpened(channelId, msg.sender, payee, operator, token, authorizedSigner, salt, context, deposit);
    }

    function settle(Descriptor calldata descriptor, uint96 cumulativeAmount, bytes calldata signature) external {
        (bytes32 channelId, Stored storage state) = _existing(descriptor);
        _onlyPayeeOrOperator(descriptor);
        if (cumulativeAmount > state.deposit) revert AmountExceedsDeposit();
        if (cumulativeAmount <= state.settled) revert AmountNotIncreasing();
        _onlySigned(descriptor, channelId, cumulativeAmount, signature);
        uint96 delta = cumulativeAmount - state.settled;
        state.settled = cumulativeAmount;
        Token(descriptor.token).transfer(descriptor.payee, delta);
        emit Settled(channelId, descriptor.payer, descriptor.payee, cumulativeAmount, delta, cumulativeAmount);
    }

    function topUp(Descriptor calldata descriptor, uint96 additionalDeposit) external {
        (bytes32 channelId, Stored storage state) = _existing(descriptor);
        if (msg.sender != descriptor.payer) revert NotPayer();
        bool hadCloseRequest = state.closeRequestedAt != 0;
        if (additionalDeposit == 0 && !hadCloseRequest) return;
        if (additionalDeposit != 0) {
            if (uint256(state.deposit) + additionalDeposit > type(uint96).max) revert DepositOverflow();
            state.deposit += additionalDeposit;
            Token(descriptor.token).transferFrom(msg.sender, address(this), additionalDeposit);
        }
        if (hadCloseRequest) {
            state.closeRequestedAt = 0;
            emit CloseRequestCancelled(channelId, descriptor.payer, descriptor.payee);
        }
        emit TopUp(channelId, descriptor.payer, descriptor.payee, additionalDeposit, state.deposit);
    }

    function requestClose(Descriptor calldata descriptor) external {
        (bytes32 channelId, Stored storage state) = _existing(descriptor);
        if (msg.sender != descriptor.payer) revert NotPayer();
        if (state.closeRequestedAt != 0) return;
        state.closeRequestedAt = uint32(block.timestamp);
        emit CloseRequested(channelId, descriptor.payer, descriptor.payee, block.timestamp + CLOSE_GRACE_PERIOD);
    }

    function close(Descriptor calldata descriptor, uint96 cumulativeAmount, uint96 captureAmount, bytes calldata signature) external {
        (bytes32 channelId, Stored storage stored) = _existing(descriptor);
        Stored memory state = stored;
        _onlyPayeeOrOperator(descriptor);
        if (captureAmount < state.settled || captureAmount > cumulativeAmount) revert CaptureAmountInvalid();
        if (captureAmount > state.deposit) revert AmountExceedsDeposit();
        if (captureAmount > state.settled) _onlySigned(descriptor, channelId, cumulativeAmount, signature);
        channels[channelId] = Stored(0, 0, 0, true);
        if (captureAmount > state.settled) Token(descriptor.token).transfer(descriptor.payee, captureAmount - state.settled);
        if (state.deposit > captureAmount) Token(descriptor.token).transfer(descriptor.payer, state.deposit - captureAmount);
        emit ChannelClosed(channelId, descriptor.payer, descriptor.payee, captureAmount, state.deposit - captureAmount);
    }

    function withdraw(Descriptor calldata descriptor) external {
        (bytes32 channelId, Stored storage stored) = _existing(descriptor);
        Stored memory state = stored;
        if (msg.sender != descriptor.payer) revert NotPayer();
        if (state.closeRequestedAt == 0 || block.timestamp < state.closeRequestedAt + CLOSE_GRACE_PERIOD) revert CloseNotReady();
        channels[channelId] = Stored(0, 0, 0, true);
        if (state.deposit > state.settled) Token(descriptor.token).transfer(descriptor.payer, state.deposit - state.settled);
        emit ChannelClosed(channelId, descriptor.payer, descriptor.payee, state.settled, state.deposit - state.settled);
    }

    function getChannel(Descriptor calldata descriptor) external view returns (Channel memory) {
        return Channel(descriptor, _stateOf(_idOf(descriptor)));
    }

    function getChannelState(bytes32 channelId) external view returns (State memory) {
        return _stateOf(channelId);
    }

    function getChannelStatesBatch(bytes32[] calldata channelIds) external view returns (State[] memory found) {
        found = new State[](channelIds.length);
        for (uint256 index = 0; index < channelIds.length; index++) found[index] = _stateOf(channelIds[index]);
    }

    function computeChannelId(
        address payer, address payee, address operator, address token, bytes32 salt, address authorizedSigner, bytes32 expiringNonceHash
    ) public view returns (bytes32) {
        return keccak256(
            abi.encode(payer, payee, operator, token, salt, authorizedSigner, expiringNonceHash, address(this), block.chainid)
        );
    }

    function getVoucherDigest(bytes32 channelId, uint96 cumulativeAmount) public view returns (bytes32) {
        bytes32 voucher = keccak256(abi.encode(VOUCHER_TYPEHASH, channelId, cumulativeAmount));
        return keccak256(abi.encodePacked(hex"1901", domainSeparator(), voucher));
    }

    function domainSeparator() public view returns (bytes32) {
        return keccak256(abi.encode(DOMAIN_TYPEHASH, keccak256("TIP20 Channel Reserve"), keccak256("1"), block.chainid, address(this)));
    }

    function _existing(Descriptor calldata descriptor) private view returns (bytes32 channelId, Stored storage state) {
        channelId = _idOf(descriptor);
        state = channels[channelId];
        if (state.deposit == 0) revert ChannelNotFound();
    }

    function _stateOf(bytes32 channelId) private view returns (State memory) {
        Stored storage stored = channels[channelId];
        return State(stored.settled, stored.deposit, stored.closeRequestedAt);
    }

    function _idOf(Descriptor calldata it) private view returns (bytes32) {
        return computeChannelId(it.payer, it.payee, it.operator, it.token, it.salt, it.authorizedSigner, it.expiringNonceHash);
    }

    function _onlyPayeeOrOperator(Descriptor calldata descriptor) private view {
        bool isOperator = descriptor.operator != address(0) && msg.sender == descriptor.operator;
        if (msg.sender != descriptor.payee && !isOperator) revert NotPayeeOrOperator();
    }

    function _onlySigned(Descriptor calldata descriptor, bytes32 channelId, uint96 cumulativeAmount, bytes calldata signature) private view {
        address expected = descriptor.authorizedSigner == address(0) ? descriptor.payer : descriptor.authorizedSigner;
        try VERIFIER.recover(getVoucherDigest(channelId, cumulativeAmount), signature) returns (address signer) {
            if (signer != expected) revert InvalidSignature();
        } catch {
            revert InvalidSignature();
        }
    }
}
