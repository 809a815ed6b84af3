/**
 * `host:port`, with brackets around an IPv6 host, and a port up to 65535. One expression, so that the JSON Schema of
 * infer.yaml has it too.
 */
export const listenPattern =
  /^(?:\[([^\]\s]+)\]|([^:\s/[\]]*)):(\d{1,4}|[1-5]\d{4}|6[0-4]\d{3}|65[0-4]\d{2}|655[0-2]\d|6553[0-5])$/

/** Parses `host:port`; 127.0.0.1 without a host. undefined for any other text. */
export function listenAddress(text: string): { host: string; port: number } | undefined {
  const match = listenPattern.exec(text)
  return match ? { host: match[1] ?? (match[2] || '127.0.0.1'), port: Number(match[3]) } : undefined
}
