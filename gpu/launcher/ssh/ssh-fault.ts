import type { SshAddress } from './ssh-command.ts'

/** What the user types to connect by hand. */
const byHand = ({ host, port }: SshAddress): string => `ssh ${port === undefined ? '' : `-p ${port} `}${host}`

/**
 * What to do about each error of ssh, by its text. `line` is the text itself, without its full stop.
 * The order counts: a changed key is also one that could not be verified.
 */
const known: readonly [RegExp, (address: SshAddress, line: string) => string][] = [
  [
    /host identification has changed|Host key for .* has changed/i,
    address =>
      `The key of '${address.host}' is not the one that ssh knows: another machine may answer in its place. If it was set up anew, remove the old key with ssh-keygen -R, and connect once by hand: ${byHand(address)}.`,
  ],
  [
    /Host key verification failed|No .* host key is known/i,
    address => `The key of '${address.host}' is not known to ssh yet. Connect once by hand: ${byHand(address)}.`,
  ],
  [
    /Permission denied|Too many authentication failures/i,
    address =>
      `'${address.host}' accepts no key of this user, and infer enters no password. Add a key without a passphrase, or one in an agent: ssh-copy-id ${address.host}.`,
  ],
  [
    /Could not resolve hostname/i,
    address => `The host of '${address.host}' is not known. Correct 'host' of the pool, or ~/.ssh/config.`,
  ],
  [
    /Connection refused|No route to host|Network is unreachable|timed out|Connection closed|Connection reset|Broken pipe|not responding/i,
    (address, line) => `'${address.host}' cannot be reached: ${line}. Check: ${byHand(address)}.`,
  ],
  [
    /administratively prohibited/i,
    address =>
      `The ssh server of '${address.host}' forwards no sockets. Set AllowTcpForwarding and AllowStreamLocalForwarding to yes in its sshd_config.`,
  ],
]

/** The reason why a connection could not be made, or has ended, as a sentence with what to do. Pure. */
export function sshFault(address: SshAddress, errorText: string): string {
  const lines = errorText
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '')
  for (const [pattern, sentence] of known) {
    const line = lines.find(one => pattern.test(one))
    if (line !== undefined) return sentence(address, line.replace(/\.$/, ''))
  }
  const last = lines.at(-1)?.replace(/\.$/, '').slice(0, 300)
  return `The connection to '${address.host}' has ended${last === undefined ? '' : `: ${last}`}. Check: ${byHand(address)}.`
}
