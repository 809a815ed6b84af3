import { execa } from 'execa'
import { isUnpacked, selfCommand } from '../core/assets.ts'
import { Failure } from '../core/failure.ts'

let unpacking: Promise<void> | undefined

/**
 * Unpacks the files of the packed executable before a built-in engine starts, because its sandbox can read but not
 * write them. Does nothing when they are on disk. Runs in a separate process: it takes a second, and the server must
 * answer meanwhile. With `verify` it also checks the contents and replaces changed files. Rejects with Failure
 * `worker_error`.
 */
export async function unpackEngineFiles({ verify = false } = {}): Promise<void> {
  if (isUnpacked() && !verify) return
  await (unpacking ??= unpack().finally(() => (unpacking = undefined)))
}

async function unpack(): Promise<void> {
  const { file, args, env } = selfCommand(['engine', 'unpack'])
  const { failed, stderr, shortMessage } = await execa(file, args, { env, stdin: 'ignore', reject: false })
  if (failed)
    throw new Failure('worker_error', `The built-in engines could not be unpacked: ${stderr.trim() || shortMessage}`)
}
