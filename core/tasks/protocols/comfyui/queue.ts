import type { Lease } from '../../../models/fleet.ts'
import { parseAnswer } from '../answer.ts'
import { ask } from '../ask.ts'

/** The queue has the whole prompts of everyone who uses this ComfyUI. */
const maxQueueBytes = 64 << 20
const removeWithinMs = 5_000

/** Returns where in the queue a prompt is; false if it is not there. */
export async function isQueued(
  lease: Lease,
  base: string,
  promptId: string,
  signal: AbortSignal,
): Promise<'running' | 'pending' | false> {
  const answer = parseAnswer(await ask(lease, `${base}/queue`, '', maxQueueBytes, signal, { method: 'GET' }))
  if (holds(answer.queue_running, promptId)) return 'running'
  return holds(answer.queue_pending, promptId) ? 'pending' : false
}

/** An item of the queue is `[number, id, prompt, …]`. */
const holds = (items: unknown, promptId: string): boolean =>
  Array.isArray(items) && items.some(item => Array.isArray(item) && item[1] === promptId)

/**
 * Removes a prompt from the queue, or interrupts it if it runs. Old versions interrupt whatever runs, so nothing is
 * interrupted unless it is this prompt. Never rejects: what could not be removed keeps the slot until it has ended.
 */
export async function removePrompt(lease: Lease, base: string, promptId: string): Promise<void> {
  const signal = AbortSignal.timeout(removeWithinMs)
  const post = (path: string, body: object) => ask(lease, base + path, JSON.stringify(body), 64 << 10, signal)
  try {
    await post('/queue', { delete: [promptId] })
    if ((await isQueued(lease, base, promptId, signal)) === 'running') await post('/interrupt', { prompt_id: promptId })
  } catch {
    // The engine has failed, or hangs: then it is stopped for that.
  } finally {
    lease.abandoned()
  }
}

/** Removes a finished prompt from the history, which would keep the words of callers. Never rejects. */
export async function forgetPrompt(lease: Lease, base: string, promptId: string, signal: AbortSignal): Promise<void> {
  await ask(lease, `${base}/history`, JSON.stringify({ delete: [promptId] }), 64 << 10, signal).catch(() => {})
}
