/** Where a machine is reached by ssh: what a pool of kind `ssh` says. */
export interface SshAddress {
  /** A host, `user@host`, or an entry of the configuration of ssh. */
  host: string
  port?: number | undefined
  /** Path of a private key; may begin with `~/`, which ssh replaces. */
  identity_file?: string | undefined
}

/** Seconds between two signs of life on a connection, how many may be missed, and how long connecting may take. */
const alive = { intervalS: 5, count: 3, connectS: 10 }

/** Never asks for anything, and gives the machine nothing of the user's: no agent, no display, no forwarded ports. */
const quiet = [
  'BatchMode=yes',
  'LogLevel=ERROR',
  'RequestTTY=no',
  'RemoteCommand=none',
  'ForwardAgent=no',
  'ForwardX11=no',
]

const settings = (...words: readonly string[]): string[] => words.flatMap(word => ['-o', word])

const addressOf = ({ host, port, identity_file: key }: SshAddress): string[] => [
  ...(port === undefined ? [] : ['-p', String(port)]),
  ...(key === undefined ? [] : ['-i', key, '-o', 'IdentitiesOnly=yes']),
  '--',
  host,
]

/**
 * Arguments that open the connection and run a command on it. Further commands and forwarded sockets use the same
 * connection through the socket `control`.
 */
export const connectArguments = (address: SshAddress, control: string, command: string): string[] => [
  '-M',
  '-S',
  control,
  ...settings(...quiet, 'ControlPersist=no', 'ClearAllForwardings=yes', 'PermitLocalCommand=no'),
  ...settings(`ConnectTimeout=${alive.connectS}`, `ServerAliveInterval=${alive.intervalS}`),
  ...settings(`ServerAliveCountMax=${alive.count}`),
  ...addressOf(address),
  command,
]

/** Arguments that run a command on an open connection; they never open another one. */
export const commandArguments = ({ host }: SshAddress, control: string, command: string): string[] => [
  '-S',
  control,
  // Without the open connection it fails: the proxy stands for another one.
  ...settings(...quiet, 'ControlMaster=no', 'ProxyCommand=false'),
  '--',
  host,
  command,
]

/**
 * Arguments that forward a socket of this machine to a socket path or `address:port` of the other, or end that. Only the user of
 * this machine may connect to the socket.
 */
export const forwardArguments = (
  { host }: SshAddress,
  control: string,
  what: 'forward' | 'cancel',
  from: string,
  to: string,
): string[] => ['-S', control, '-O', what, '-o', 'StreamLocalBindUnlink=yes', '-L', `${from}:${to}`, '--', host]

/** One word of a POSIX shell. */
export const quoted = (word: string): string => `'${word.replaceAll("'", String.raw`'\''`)}'`

/** A command for any login shell that runs this script of a POSIX shell. */
export const shellCommand = (script: string): string => `exec sh -c ${quoted(script)}`
