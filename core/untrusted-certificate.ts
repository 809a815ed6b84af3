/** Codes of OpenSSL for a certificate that no known authority has signed. */
const unknownAuthority: ReadonlySet<unknown> = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
])

/**
 * Returns the sentence about a server whose certificate is signed by an authority that this program does not know, with
 * what to do; undefined for any other error.
 */
export function untrustedCertificate(host: string, error: unknown): string | undefined {
  const { code } = (error ?? {}) as { code?: unknown }
  return unknownAuthority.has(code)
    ? `The certificate of ${host} is signed by an authority that infer does not know (${String(code)}). If you trust it, set NODE_USE_SYSTEM_CA=1, which adds the authorities of this machine, or NODE_EXTRA_CA_CERTS to the PEM file of the authority.`
    : undefined
}
