import { isIP } from 'node:net'

/**
 * Whether a request may be answered under the Host it names. A page that a browser was lured to can reach a local
 * server only through a name that it rebinds, so names are taken from a list and addresses are safe.
 * `rawHeaders` is Node's flat list: a second Host header is accepted by Node and refused here.
 */
export function hostAllowed(rawHeaders: readonly string[], allowed: ReadonlySet<string>): boolean {
  let host: string | undefined
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!
    if (name.length !== 4 || name.toLowerCase() !== 'host') continue
    if (host !== undefined) return false
    host = rawHeaders[at + 1]!
  }
  if (host === undefined) return false
  const name = hostName(host)
  return name !== undefined && (name === 'localhost' || isIP(name) !== 0 || allowed.has(name))
}

const form = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::\d{1,5})?$/

/** The name or address of a Host header without its port, in lower case; undefined when malformed. */
export function hostName(host: string): string | undefined {
  const match = form.exec(host)
  return (match?.[1] ?? match?.[2])?.toLowerCase()
}
