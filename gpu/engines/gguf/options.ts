import { Failure } from '../../../core/failure.ts'
import type { Task } from '../../../core/tasks/tasks.ts'

/** What `infer engine gguf` is told. */
export interface GgufEngineOptions {
  /** Path of the GGUF file; of a split model the first part. */
  model: string
  /** The name under which it answers. */
  id: string
  tasks: readonly Task[]
  /** Where it listens: a Unix socket that only this user may open, or a port on 127.0.0.1. One of the two. */
  socket?: string
  port?: number
  threads: number
  /** Chats that are worked on at once, 1 to 256. */
  parallel: number
  /** Tokens that one request may take, prompt and answer together. At most what the model was trained for. */
  context?: number
  gpu: 'auto' | 'off'
  /** When given, every request but /health needs it as bearer token. */
  key?: string
}

/** llama.cpp refuses to make a context for more sequences than this. */
export const mostParallel = 256
/** The longest path that fits into the address of a Unix socket on Linux, without its closing zero. */
const longestSocketPath = 107

/** Throws Failure `invalid_value` for options that cannot work, before anything is started. */
export function checkOptions(options: GgufEngineOptions): void {
  const wrong = (param: string, message: string) => new Failure('invalid_value', message, { param })
  const within = (name: string, value: number | undefined, least: number, most: number) => {
    if (value !== undefined && !(Number.isInteger(value) && value >= least && value <= most))
      throw wrong(name, `--${name} must be a whole number from ${least} to ${most}, not ${value}.`)
  }
  if (options.tasks.length === 0) throw wrong('task', 'Say with --task what the model is for.')
  if ((options.socket === undefined) === (options.port === undefined))
    throw wrong('socket', 'Say where to listen: --socket <path> or --port <number>, one of them.')
  if (options.socket !== undefined && Buffer.byteLength(options.socket) > longestSocketPath)
    throw wrong('socket', `The path of a socket has at most ${longestSocketPath} bytes; '${options.socket}' has more.`)
  within('port', options.port, 0, 65_535)
  within('threads', options.threads, 1, 1024)
  within('parallel', options.parallel, 1, mostParallel)
  within('context', options.context, 16, 2 ** 24)
}

/**
 * Tokens of one request: what was asked for, or else a size that common machines have memory for, and never more
 * than the model was trained for. Encoders read a text in one go, so that their memory grows with its square.
 */
export const contextTokens = (kind: 'chat' | 'encoder', asked: number | undefined, trained: number): number =>
  Math.min(asked ?? (kind === 'chat' ? 4096 : 2048), trained)
