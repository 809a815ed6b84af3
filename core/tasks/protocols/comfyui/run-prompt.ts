import { randomUUID } from 'node:crypto'
import { Failure } from '../../../failure.ts'
import type { Graph } from '../../../models/comfyui/graph.ts'
import type { EngineSocket } from '../../../models/engine-socket.ts'
import type { Lease } from '../../../models/fleet.ts'
import { parseAnswer } from '../answer.ts'
import { ask } from '../ask.ts'
import { type PromptEvent, PromptEvents } from './events.ts'
import { entryIn, type HistoryEntry } from './history.ts'

/** Milliseconds between looks at the history: while the socket is open, and while it is not. */
const openPollMs = 5_000
const brokenPollMs = 500
/** The history has a prompt a moment after the socket has announced its end. */
const endedPollMs = 50
/** A prompt that is neither queued nor in the history for this long is lost. */
const lostAfterMs = 3_000
/** Time for the socket to open before the prompt is queued without it. */
const socketWithinMs = 2_000
/** The history has the whole prompt and the error trace. */
const maxAnswerBytes = 32 << 20

interface PromptListener {
  progress(fraction: number): void
  preview(bytes: Buffer, fraction: number): void
}

/**
 * Queues a graph and resolves with its entry in the history. The WebSocket reports progress and when to look; while it
 * is broken, the history is polled. If it rejects, the prompt is no longer queued and its work is interrupted. `base` is the
 * path of the server.
 */
export async function runPrompt(
  lease: Lease,
  { base, graph }: { base: string; graph: Graph },
  signal: AbortSignal,
  listener: PromptListener,
): Promise<HistoryEntry> {
  const clientId = randomUUID()
  const events = new PromptEvents(graph)
  let socket: EngineSocket | undefined
  let isOpen = false
  let ended = false
  let stalled: Failure | undefined
  let wake = Promise.withResolvers<void>()

  function handle({ fraction, preview, ended: isEnd }: PromptEvent): void {
    if (fraction !== undefined) listener.progress(fraction)
    if (preview) listener.preview(preview, events.fraction)
    if (!isEnd) return
    ended = true
    wake.resolve()
  }

  function connect(): void {
    socket = lease.connect(`${base}/ws?clientId=${clientId}`, {
      opened() {
        isOpen = true
        wake.resolve()
      },
      message: data => handle(events.read(data)),
      failed(failure) {
        isOpen = false
        socket = undefined
        if (failure.code === 'timeout') stalled = failure
        wake.resolve()
      },
    })
  }

  /** Waits until the socket has news, the run is aborted, or `ms` have passed. */
  async function pause(ms: number): Promise<void> {
    signal.throwIfAborted()
    const timer = setTimeout(wake.resolve, ms)
    const { promise, resolve } = wake
    const leave = () => resolve()
    signal.addEventListener('abort', leave, { once: true })
    await promise
    clearTimeout(timer)
    signal.removeEventListener('abort', leave)
    wake = Promise.withResolvers()
    signal.throwIfAborted()
  }

  async function look(id: string): Promise<HistoryEntry | undefined> {
    const answer = await ask(lease, `${base}/history/${id}`, '', maxAnswerBytes, signal, { method: 'GET' })
    return entryIn(parseAnswer(answer), id)
  }

  async function follow(id: string): Promise<HistoryEntry> {
    let missingSince: number | undefined
    for (;;) {
      await pause(ended ? endedPollMs : isOpen ? openPollMs : brokenPollMs)
      // Asked before the history: a prompt that leaves the queue is in the history at the same time.
      const queued = !ended && isOpen ? true : await isQueued(lease, base, id, signal)
      const entry = await look(id)
      if (entry) return entry
      if (stalled && queued !== 'pending') throw stalled
      stalled = undefined
      missingSince = queued ? undefined : (missingSince ?? performance.now())
      if (missingSince !== undefined && performance.now() - missingSince > lostAfterMs)
        throw new Failure(
          'worker_error',
          `The engine of '${lease.modelId}' lost the work: its queue and its history do not have it any more. Trying again may help.`,
        )
      if (!socket) connect()
    }
  }

  let promptId: string | undefined
  try {
    connect()
    await pause(socketWithinMs)
    promptId = await queue(lease, base, { prompt: graph, client_id: clientId })
    handle(events.begin(promptId))
    const entry = await follow(promptId)
    await forgetPrompt(lease, base, promptId, signal)
    return entry
  } catch (thrown) {
    if (promptId !== undefined) await removePrompt(lease, base, promptId)
    throw thrown
  } finally {
    socket?.close()
  }
}

/** Queues a prompt and resolves with its id. Not aborted: a prompt whose id is not known could not be cancelled. */
async function queue(lease: Lease, base: string, prompt: object): Promise<string> {
  const never = new AbortController().signal
  const answer = parseAnswer(await ask(lease, `${base}/prompt`, JSON.stringify(prompt), maxAnswerBytes, never))
  if (typeof answer.prompt_id === 'string' && /^[\w-]{1,128}$/.test(answer.prompt_id)) return answer.prompt_id
  throw new Failure('worker_error', `The engine of '${lease.modelId}' did not queue the work. Trying again may help.`)
}

/** The queue has the whole prompts of everyone who uses this ComfyUI. */
const maxQueueBytes = 64 << 20
const removeWithinMs = 5_000

/** Returns where in the queue a prompt is; false if it is not there. */
async function isQueued(
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
async function removePrompt(lease: Lease, base: string, promptId: string): Promise<void> {
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
async function forgetPrompt(lease: Lease, base: string, promptId: string, signal: AbortSignal): Promise<void> {
  await ask(lease, `${base}/history`, JSON.stringify({ delete: [promptId] }), 64 << 10, signal).catch(() => {})
}
