"""Makes keys and certificates for a broker on this machine and for its clients, with the extra ``pkcs12``."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyjmsack.broker.errors import BrokerError
from pyjmsack.broker.private import write_private
from pyjmsack.extras import missing_extra

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.x509 import Certificate, ObjectIdentifier

__all__ = ["BROKER", "CLIENT", "CLIENTS", "TRUST", "write_stores"]

BROKER: Final = "broker.p12"
"""The key store of the broker."""
TRUST: Final = "trust.pem"
"""The certificate of the authority that clients trust."""
CLIENT: Final = "client.pem"
"""The certificate and the key of a client."""
CLIENTS: Final = "clients.p12"
"""The certificate of the authority that the broker trusts, in a trust store for Java."""

_DAYS: Final = 3650
"""The number of days for which a certificate is valid. The number is large, because a broker with a data directory
makes its certificate only once."""


def write_stores(folder: Path, password: str) -> None:
    """Write the key store of a broker at ``localhost`` and 127.0.0.1, the certificate of a client, and the certificate
    of the authority that signed both.

    The key of the authority is not kept, so nobody can make a second certificate that these clients or this broker
    trust. Only the owner may read the files.

    Args:
        folder: where the files are written.
        password: the password of the stores for Java. The key of the client has no password.

    Raises:
        BrokerError: the extra is not installed.
        OSError: a file cannot be written.
    """
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.serialization import pkcs12
        from cryptography.x509.oid import ExtendedKeyUsageOID
    except ImportError as error:
        raise BrokerError(missing_extra("pkcs12", "tls=True, which makes a certificate,", error)) from error
    authority_key, key, client_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
    authority = _certificate("pyjmsack test authority", authority_key, authority_key, None)
    own = _certificate("localhost", key, authority_key, authority, ExtendedKeyUsageOID.SERVER_AUTH)
    client = _certificate("pyjmsack test client", client_key, authority_key, authority, ExtendedKeyUsageOID.CLIENT_AUTH)
    secret, pem = serialization.BestAvailableEncryption(password.encode()), serialization.Encoding.PEM
    bare = client_key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    trusted = [pkcs12.PKCS12Certificate(authority, b"authority")]
    write_private(folder / BROKER, pkcs12.serialize_key_and_certificates(b"broker", key, own, [authority], secret))
    write_private(folder / TRUST, authority.public_bytes(pem))
    write_private(folder / CLIENT, client.public_bytes(pem) + bare)
    write_private(folder / CLIENTS, pkcs12.serialize_java_truststore(trusted, secret))


def _certificate(
    name: str,
    key: EllipticCurvePrivateKey,
    signer: EllipticCurvePrivateKey,
    issuer: Certificate | None,
    purpose: ObjectIdentifier | None = None,
) -> Certificate:
    """Return a certificate that ``issuer`` signed. Without an issuer return the certificate of a new authority."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.x509.oid import NameOID

    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now, is_authority = datetime.now(timezone.utc), issuer is None
    usage = x509.KeyUsage(
        digital_signature=not is_authority,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))  # earlier than now, because clocks may differ
        .not_valid_after(now + timedelta(days=_DAYS))
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=0 if is_authority else None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    if purpose is not None:
        names = [x509.DNSName("localhost"), *(x509.IPAddress(ip_address(each)) for each in ("127.0.0.1", "::1"))]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False).add_extension(
            x509.ExtendedKeyUsage([purpose]), critical=False
        )
    return builder.sign(signer, hashes.SHA256())
