import { createParser } from 'eventsource-parser'
import { send } from '../../api/client.ts'
import { type JobEvent, type JobMoment, momentOf } from './job-moments.ts'

/** Milliseconds of silence after which a job that has not ended has no more past. */
const silenceMs = 500

/** Reads what has happened to a job, as far as the server keeps it: a day. */
export async function readHistory(id: string, signal: AbortSignal): Promise<JobMoment[]> {
  const caughtUp = new AbortController()
  const moments: JobMoment[] = []
  let silence: ReturnType<typeof setTimeout> | undefined
  const parser = createParser({
    onEvent({ event = '', data }) {
      if (!(event.startsWith('job.') && event !== 'job.progress')) return
      moments.push(momentOf(event, JSON.parse(data) as JobEvent))
    },
  })
  try {
    const response = await send(`/api/jobs/${encodeURIComponent(id)}/events?after=evt_0`, {
      signal: AbortSignal.any([signal, caughtUp.signal]),
    })
    for await (const text of response.body!.pipeThrough(new TextDecoderStream())) {
      parser.feed(text)
      clearTimeout(silence)
      silence = setTimeout(() => caughtUp.abort(), silenceMs)
    }
  } catch (thrown) {
    if (!caughtUp.signal.aborted) throw thrown
  } finally {
    clearTimeout(silence)
  }
  return moments
}
