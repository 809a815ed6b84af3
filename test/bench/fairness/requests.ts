import type { Organization, Platform } from './platform.ts'

/** How a request is sent: by a synchronous caller, or as a durable job that is waited for. */
export type Kind = 'chat' | 'job'

/** What a request asks for: the model that serves it and how long the engine works on it. */
export interface Work {
  model: string
  ms: number
}

const chatOf = ({ ms }: Work, by: Organization) => ({
  messages: [{ role: 'user', content: `serve ${ms} for ${by.name}` }],
})

/** Submits a job and resolves with its id. */
export async function submit(platform: Platform, work: Work, by: Organization): Promise<string> {
  const body = { task: 'std/chat-completion', model_id: work.model, inputs: chatOf(work, by) }
  return ((await platform.post('/api/jobs', body, by)) as { id: string }).id
}

/** Sends one request and resolves with the milliseconds until its answer was there. */
export async function send(
  kind: Kind,
  platform: Platform,
  work: Work,
  by: Organization,
  signal?: AbortSignal,
): Promise<number> {
  const began = performance.now()
  if (kind === 'chat') {
    await platform.post('/std/v1/chat/completions', { model: work.model, ...chatOf(work, by) }, by, signal)
    return performance.now() - began
  }
  const id = await submit(platform, work, by)
  for (;;) {
    const { status } = (await platform.get(`/api/jobs/${id}?wait=60`, by)) as { status: string }
    if (status === 'completed') return performance.now() - began
    if (status === 'failed' || status === 'cancelled') throw new Error(`${id} ended ${status}`)
  }
}

/** Keeps `count` requests of an organization outstanding, each followed by the next, until it is stopped. */
export function keepSending(kind: Kind, platform: Platform, work: Work, by: Organization, count: number) {
  const stopped = new AbortController()
  const sender = async () => {
    while (!stopped.signal.aborted)
      await send(kind, platform, work, by, stopped.signal).catch((thrown: unknown) => {
        if (!stopped.signal.aborted) throw thrown
      })
  }
  const senders = Promise.all(Array.from({ length: count }, sender))
  return {
    /** Rejects when a request fails. */
    failed: senders.then(() => new Promise<never>(() => {})),
    /** Disconnects the chats; jobs that were submitted run on. */
    stop: () => stopped.abort(),
  }
}
