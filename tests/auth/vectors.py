"""Vectors for signatures of tokens, in the form of the Wycheproof project and made with other code than checks them.

For each algorithm there is a key, tokens with right signatures, and tokens that differ from those in one thing.
"""

from __future__ import annotations

import functools
import hashlib
import hmac
import json
from typing import TYPE_CHECKING, Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from tests.auth.making_tokens import text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Sign = Callable[[bytes], bytes]
    Vector = tuple[str, str, bool]

FILE = "generated"
PAYLOADS = {"normal": b'{"sub":"alice"}', "empty": b"", "one byte": b"0", "zeros": bytes(32)}
_HASHES = {256: hashes.SHA256(), 384: hashes.SHA384(), 512: hashes.SHA512()}
_CURVES: dict[int, ec.EllipticCurve] = {256: ec.SECP256R1(), 384: ec.SECP384R1(), 512: ec.SECP521R1()}
_CURVE_NAMES = {256: "P-256", 384: "P-384", 512: "P-521"}
# DigestInfo of PKCS #1 before the digest; RFC 8017 section 9.2, note 1.
_DIGEST_INFO = {
    256: bytes.fromhex("3031300d060960864801650304020105000420"),
    384: bytes.fromhex("3041300d060960864801650304020205000430"),
    512: bytes.fromhex("3051300d060960864801650304020305000440"),
}
_SHA1_DIGEST_INFO = bytes.fromhex("3021300906052b0e03021a05000414")
_SECRET = b"\x0b" * 64


def groups() -> list[dict[str, Any]]:
    """Return test groups as a file of Wycheproof has them."""
    tests = 0
    result: list[dict[str, Any]] = []
    for algorithm, key, vectors in _algorithms():
        group: list[dict[str, Any]] = []
        for comment, token, valid in vectors:
            tests += 1
            outcome = "valid" if valid else "invalid"
            group.append({"tcId": tests, "comment": comment, "jws": token, "result": outcome})
        result.append({"public": {**key, "alg": algorithm}, "tests": group})
    return result


def _algorithms() -> Iterator[tuple[str, dict[str, Any], list[Vector]]]:
    numbers = _rsa().public_key().public_numbers()
    rsa_key: dict[str, Any] = {"kty": "RSA", "n": _integer(numbers.n), "e": _integer(numbers.e)}
    for bits in _HASHES:
        name = f"HS{bits}"
        yield name, {"kty": "oct", "k": text(_SECRET)}, [*_common(name, _hmac(bits)), *_hmac_faults(name, bits)]
        name = f"RS{bits}"
        yield name, rsa_key, [*_common(name, _pkcs1(bits)), *_pkcs1_faults(name, bits)]
        name = f"PS{bits}"
        yield name, rsa_key, [*_common(name, _pss(bits)), *_pss_faults(name, bits)]
        name = f"ES{bits}"
        private = ec.generate_private_key(_CURVES[bits])
        point, size = private.public_key().public_numbers(), (private.key_size + 7) // 8
        key: dict[str, Any] = {"kty": "EC", "crv": _CURVE_NAMES[bits]}
        key |= {"x": text(point.x.to_bytes(size, "big")), "y": text(point.y.to_bytes(size, "big"))}
        yield name, key, [*_common(name, _ecdsa(private, bits)), *_ecdsa_faults(name, private, bits)]
    signer = ed25519.Ed25519PrivateKey.generate()
    key = {"kty": "OKP", "crv": "Ed25519", "x": text(signer.public_key().public_bytes_raw())}
    yield "EdDSA", key, list(_common("EdDSA", signer.sign))


@functools.cache
def _rsa() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


def _signed(header: dict[str, Any], payload: bytes, sign: Sign) -> str:
    start = f"{text(json.dumps(header).encode())}.{text(payload)}"
    return f"{start}.{text(sign(start.encode()))}"


def _common(algorithm: str, sign: Sign) -> Iterator[Vector]:
    """Yield right tokens, and those with faults that an algorithm has nothing to do with."""
    for name, data in PAYLOADS.items():
        yield f"{name} payload", _signed({"alg": algorithm}, data, sign), True
    token = _signed({"alg": algorithm}, PAYLOADS["normal"], sign)
    header, payload, signature = token.split(".")
    raw = sign(f"{header}.{payload}".encode())
    for position in (0, len(raw) // 2, len(raw) - 1):
        changed = bytearray(raw)
        changed[position] ^= 1
        yield f"byte {position} of the signature is changed", f"{header}.{payload}.{text(bytes(changed))}", False
    yield "the signature is empty", f"{header}.{payload}.", False
    yield "the signature and its separator are missing", f"{header}.{payload}", False
    yield "the signature is truncated", f"{header}.{payload}.{text(raw[:-1])}", False
    yield "the signature has another byte behind it", f"{header}.{payload}.{text(raw + bytes(1))}", False
    yield "the signature has another byte before it", f"{header}.{payload}.{text(bytes(1) + raw)}", False
    yield "the signature is zeros", f"{header}.{payload}.{text(bytes(len(raw)))}", False
    yield "the header is missing", f".{payload}.{signature}", False
    yield "the payload is missing", f"{header}..{signature}", False
    yield "the payload is another one", f"{header}.{text(PAYLOADS['one byte'])}.{signature}", False
    longer = text(json.dumps({"alg": algorithm, "x": 1}).encode())
    yield "the header is another one", f"{longer}.{payload}.{signature}", False
    yield "there is a fourth part", f"{token}.{signature}", False
    yield "there is a separator behind it", f"{token}.", False
    yield "there is white space before it", f" {token}", False
    yield "there is a line break in it", f"{header}.{payload}\n.{signature}", False
    yield "the signature is padded", f"{header}.{payload}.{signature}=", False
    yield "the text is empty", "", False
    none = text(b'{"alg":"none"}')
    yield "the algorithm is none, without a signature", f"{none}.{payload}.", False
    yield "the algorithm is none", _signed({"alg": "none"}, PAYLOADS["normal"], sign), False
    yield "the algorithm is missing", _signed({}, PAYLOADS["normal"], sign), False
    yield "the algorithm has another case", _signed({"alg": algorithm.swapcase()}, PAYLOADS["normal"], sign), False
    unknown = {"alg": algorithm, "crit": ["x"], "x": 1}
    yield "an extension is critical and not known", _signed(unknown, PAYLOADS["normal"], sign), False
    for other in ("HS256", "RS256", "PS384", "ES512", "EdDSA"):
        if other != algorithm:
            yield f"the header says {other}", _signed({"alg": other}, PAYLOADS["normal"], sign), False


def _hmac(bits: int) -> Sign:
    return lambda data: hmac.digest(_SECRET, data, f"sha{bits}")


def _hmac_faults(algorithm: str, bits: int) -> Iterator[Vector]:
    header = {"alg": algorithm}
    for other in {256, 384, 512} - {bits}:
        yield f"the digest is SHA-{other}", _signed(header, b"{}", _hmac(other)), False
    yield "the secret is another one", _signed(header, b"{}", lambda data: hmac.digest(b"x", data, f"sha{bits}")), False
    digest = hashlib.new(f"sha{bits}", f"{text(json.dumps(header).encode())}.{text(b'{}')}".encode()).digest()
    yield "it is a digest without a secret", _signed(header, b"{}", lambda _: digest), False


def _pkcs1(bits: int) -> Sign:
    return lambda data: _rsa().sign(data, padding.PKCS1v15(), _HASHES[bits])


def _pkcs1_faults(algorithm: str, bits: int) -> Iterator[Vector]:
    """Yield signatures whose encoded message, which only the private key can make, is wrong in one thing."""
    size = _rsa().key_size // 8
    info = _DIGEST_INFO[bits]
    short = info.replace(b"\x05\x00", b"").replace(info[:2], bytes([info[0], info[1] - 2]), 1)
    short = short[:3] + bytes([info[3] - 2]) + short[4:]

    def signed(comment: str, encode: Callable[[bytes], bytes]) -> Vector:
        def sign(data: bytes) -> bytes:
            return _raised(encode(hashlib.new(f"sha{bits}", data).digest()))

        return comment, _signed({"alg": algorithm}, b"{}", sign), False

    def filled(content: bytes, start: bytes = b"\x00\x01") -> bytes:
        return start + b"\xff" * (size - len(start) - 1 - len(content)) + b"\x00" + content

    yield signed("the digest has no NULL parameters", lambda digest: filled(short + digest))
    yield signed("the digest has no DigestInfo", filled)
    yield signed("the digest is that of SHA-1", lambda digest: filled(_SHA1_DIGEST_INFO + digest[:20]))
    yield signed("the block is of type 2", lambda digest: filled(info + digest, b"\x00\x02"))
    yield signed("the block is of type 0", lambda digest: filled(info + digest, b"\x00\x00"))
    yield signed("garbage is behind the digest", lambda digest: filled(info + digest + b"\x00" * 8))
    yield signed("the padding is short, and the rest is garbage", lambda digest: _short(info + digest, size))
    yield signed("the digest is truncated", lambda digest: filled(info + digest[:-1]))
    for other in {256, 384, 512} - {bits}:
        yield f"the digest is SHA-{other}", _signed({"alg": algorithm}, b"{}", _pkcs1(other)), False
    yield "the padding is PSS", _signed({"alg": algorithm}, b"{}", _pss(bits)), False


def _short(content: bytes, size: int) -> bytes:
    start = b"\x00\x01" + b"\xff" * 8 + b"\x00" + content
    return start + b"\x01" * (size - len(start))


def _raised(message: bytes) -> bytes:
    numbers = _rsa().private_numbers()
    modulus = numbers.public_numbers.n
    return pow(int.from_bytes(message, "big"), numbers.d, modulus).to_bytes(len(message), "big")


def _pss(bits: int, salt: int | None = None, mask: int | None = None) -> Sign:
    scheme = padding.PSS(padding.MGF1(_HASHES[mask or bits]), bits // 8 if salt is None else salt)
    return lambda data: _rsa().sign(data, scheme, _HASHES[bits])


def _pss_faults(algorithm: str, bits: int) -> Iterator[Vector]:
    header = {"alg": algorithm}
    for salt in (0, bits // 8 - 1, bits // 8 + 1):
        yield f"the salt has {salt} bytes", _signed(header, b"{}", _pss(bits, salt)), False
    for other in {256, 384, 512} - {bits}:
        yield f"the digest is SHA-{other}", _signed(header, b"{}", _pss(other)), False
        yield f"the mask's digest is SHA-{other}", _signed(header, b"{}", _pss(bits, mask=other)), False
    yield "the padding is PKCS #1", _signed(header, b"{}", _pkcs1(bits)), False


def _ecdsa(private: ec.EllipticCurvePrivateKey, bits: int) -> Sign:
    def sign(data: bytes) -> bytes:
        return _fixed(private, *decode_dss_signature(private.sign(data, ec.ECDSA(_HASHES[bits]))))

    return sign


def _fixed(private: ec.EllipticCurvePrivateKey, r: int, s: int) -> bytes:
    size = (private.key_size + 7) // 8
    return r.to_bytes(size, "big") + s.to_bytes(size, "big")


def _ecdsa_faults(algorithm: str, private: ec.EllipticCurvePrivateKey, bits: int) -> Iterator[Vector]:
    header = {"alg": algorithm}
    size = (private.key_size + 7) // 8
    kind = ec.ECDSA(_HASHES[bits])

    def altered(change: Callable[[int, int], tuple[int, int]]) -> str:
        def sign(data: bytes) -> bytes:
            return _fixed(private, *change(*decode_dss_signature(private.sign(data, kind))))

        return _signed(header, b"{}", sign)

    maximum = 256**size - 1
    yield "the signature is in DER", _signed(header, b"{}", lambda data: private.sign(data, kind)), False
    yield "r and s are swapped", altered(lambda r, s: (s, r)), False
    yield "r is 0", altered(lambda _, s: (0, s)), False
    yield "s is 0", altered(lambda r, _: (r, 0)), False
    yield "r and s are 1", altered(lambda _r, _s: (1, 1)), False
    yield "r is larger than the order", altered(lambda _, s: (maximum, s)), False
    yield "s is larger than the order", altered(lambda r, _: (r, maximum)), False
    for other in {256, 384, 512} - {bits}:
        yield f"the digest is SHA-{other}", _signed(header, b"{}", _ecdsa(private, other)), False
    stranger = ec.generate_private_key(_CURVES[bits])
    yield "the key is another one", _signed(header, b"{}", _ecdsa(stranger, bits)), False


def _integer(number: int) -> str:
    return text(number.to_bytes((number.bit_length() + 7) // 8, "big"))
