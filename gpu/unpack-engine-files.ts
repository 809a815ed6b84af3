import { execa } from 'execa'
import { isUnpacked, selfCommand } from '../core/assets.ts'
import { Failure } from '../core/failure.ts'

let unpacking: Promise<void> | undefined

/**
 * Makes sure that the parts of the packed executable lie on disk before an engine of our own starts: in its sandbox it
 * can read them and cannot write them. Takes nothing when they are there. In a process of its own, because it takes a
 * second and the server answers meanwhile. `again`: checks the contents too and replaces what was changed. Rejects with Failure `worker_error`.
 */
export async function unpackEngineFiles({ again = false } = {}): Promise<void> {
  if (isUnpacked() && !again) return
  unpacking ??= unpack().finally(() => {
    unpacking = undefined
  })
  await unpacking
}

async function unpack(): Promise<void> {
  const { file, args, env } = selfCommand(['engine', 'unpack'])
  const { failed, stderr, shortMessage } = await execa(file, args, { env, stdin: 'ignore', reject: false })
  if (failed)
    throw new Failure('worker_error', `The built-in engines could not be unpacked: ${stderr.trim() || shortMessage}`)
}
