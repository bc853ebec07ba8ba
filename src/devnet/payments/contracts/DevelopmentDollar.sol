// SPDX-License-Identifier: UNLICENSED
// A token with EIP-3009 for the local chain, so that payments can be tried without money. It is worth nothing.
// Behaves like the well-known stablecoins where payments touch it; knows nothing of allowances, blocked addresses or proxies.
pragma solidity 0.8.37;

contract DevelopmentDollar {
    string public constant name = "Development Dollar";
    string public constant symbol = "DEVUSD";
    string public constant version = "1";
    uint8 public constant decimals = 6;

    bytes32 public constant TRANSFER_WITH_AUTHORIZATION_TYPEHASH =
        keccak256("TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)");
    bytes32 public constant CANCEL_AUTHORIZATION_TYPEHASH = keccak256("CancelAuthorization(address authorizer,bytes32 nonce)");
    bytes32 private constant DOMAIN_TYPEHASH =
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
    // Half of the curve's order: a signature with a higher s is the twin of another one.
    uint256 private constant MAX_S = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0;

    uint256 public immutable totalSupply;
    mapping(address => uint256) public balanceOf;
    // True = the authorization was used or cancelled.
    mapping(address => mapping(bytes32 => bool)) public authorizationState;

    event Transfer(address indexed from, address indexed to, uint256 value);
    event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce);
    event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce);

    constructor(address[] memory holders, uint256 each) {
        totalSupply = each * holders.length;
        for (uint256 index = 0; index < holders.length; index++) {
            balanceOf[holders[index]] += each;
            emit Transfer(address(0), holders[index], each);
        }
    }

    function DOMAIN_SEPARATOR() public view returns (bytes32) {
        return keccak256(abi.encode(DOMAIN_TYPEHASH, keccak256(bytes(name)), keccak256(bytes(version)), block.chainid, address(this)));
    }

    function transfer(address to, uint256 value) external returns (bool) {
        _move(msg.sender, to, value);
        return true;
    }

    function transferWithAuthorization(
        address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s
    ) public {
        require(block.timestamp > validAfter, "DEVUSD: authorization is not yet valid");
        require(block.timestamp < validBefore, "DEVUSD: authorization is expired");
        require(!authorizationState[from][nonce], "DEVUSD: authorization is used or canceled");
        _requireSigned(from, keccak256(abi.encode(TRANSFER_WITH_AUTHORIZATION_TYPEHASH, from, to, value, validAfter, validBefore, nonce)), v, r, s);
        authorizationState[from][nonce] = true;
        emit AuthorizationUsed(from, nonce);
        _move(from, to, value);
    }

    function transferWithAuthorization(
        address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes calldata signature
    ) external {
        require(signature.length == 65, "DEVUSD: invalid signature");
        bytes32 r = bytes32(signature[0:32]);
        transferWithAuthorization(from, to, value, validAfter, validBefore, nonce, uint8(signature[64]), r, bytes32(signature[32:64]));
    }

    function cancelAuthorization(address authorizer, bytes32 nonce, uint8 v, bytes32 r, bytes32 s) external {
        require(!authorizationState[authorizer][nonce], "DEVUSD: authorization is used or canceled");
        _requireSigned(authorizer, keccak256(abi.encode(CANCEL_AUTHORIZATION_TYPEHASH, authorizer, nonce)), v, r, s);
        authorizationState[authorizer][nonce] = true;
        emit AuthorizationCanceled(authorizer, nonce);
    }

    function _requireSigned(address signer, bytes32 structHash, uint8 v, bytes32 r, bytes32 s) private view {
        bytes32 digest = keccak256(abi.encodePacked(hex"1901", DOMAIN_SEPARATOR(), structHash));
        require(uint256(s) <= MAX_S && signer != address(0) && ecrecover(digest, v, r, s) == signer, "DEVUSD: invalid signature");
    }

    function _move(address from, address to, uint256 value) private {
        require(to != address(0), "DEVUSD: transfer to the zero address");
        require(balanceOf[from] >= value, "DEVUSD: transfer amount exceeds balance");
        balanceOf[from] -= value;
        balanceOf[to] += value;
        emit Transfer(from, to, value);
    }
}
