import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { api, at, eventsOf, hasEnded, type Schema, send, useAnswer } from '../../api/client.ts'
import { useLiveEvents } from '../../api/live.ts'
import { Queried, Section } from '../../components/page.tsx'
import { Time } from '../../components/time.tsx'
import { jobsText } from '../../text/jobs.ts'
import { type JobEvent, type JobMoment, momentOf, momentsOf } from './job-moments.ts'

/** Milliseconds of silence after which a job that has not ended has no more past. */
const silenceMs = 500

/** Reads what has happened to a job, as far as the server keeps it: a day. */
async function readHistory(id: string, signal: AbortSignal): Promise<JobMoment[]> {
  const caughtUp = new AbortController()
  const moments: JobMoment[] = []
  let silence: ReturnType<typeof setTimeout> | undefined
  const heard = () => {
    clearTimeout(silence)
    silence = setTimeout(() => caughtUp.abort(), silenceMs)
  }
  try {
    const response = await send(`/api/jobs/${encodeURIComponent(id)}/events?after=evt_0`, {
      signal: AbortSignal.any([signal, caughtUp.signal]),
    })
    for await (const { event = '', data } of eventsOf(response, heard)) {
      heard()
      if (event.startsWith('job.') && event !== 'job.progress')
        moments.push(momentOf(event, JSON.parse(data) as JobEvent))
    }
  } catch (thrown) {
    if (!caughtUp.signal.aborted) throw thrown
  } finally {
    clearTimeout(silence)
  }
  return moments
}

/** What the engine has written while the job ran. */
export function JobLog({ job }: { job: Schema<'Job'> }) {
  const { id } = job
  const query = useAnswer(['jobs', 'log', id], () => api.GET('/api/jobs/{id}/logs', at({ id })), {
    refetchInterval: hasEnded(job) ? false : 2_000,
  })
  return (
    <Queried query={query} lines={2}>
      {({ logs }) =>
        logs.length === 0 ? (
          <p className="text-muted">{jobsText.noLog}</p>
        ) : (
          <pre
            tabIndex={0}
            aria-label={jobsText.log}
            className="bg-raised border-line max-h-72 overflow-auto rounded-md border p-3 font-mono text-xs whitespace-pre-wrap"
          >
            {logs.map(({ timestamp, message }) => `${timestamp.slice(11, 19)}  ${message}\n`)}
          </pre>
        )
      }
    </Queried>
  )
}

/** What happened to a job: what the server keeps, and what arrives while the page is open. */
export function JobEvents({ job }: { job: Schema<'Job'> }) {
  const { id } = job
  const [arrived, setArrived] = useState<readonly JobMoment[]>([])
  useLiveEvents(['job.'], events => {
    const own = events.filter(({ data }) => data.data?.job_id === id)
    if (own.length > 0) setArrived(now => [...now, ...own.map(({ type, data }) => momentOf(type, data))])
  })
  const { data: past = [] } = useQuery({
    queryKey: ['jobs', 'history', id],
    queryFn: ({ signal }) => readHistory(id, signal),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    retry: false,
  })
  return (
    <Section title={jobsText.events}>
      <ol className="space-y-1">
        {momentsOf(job, past, arrived).map(({ type, at, attempt, reason }) => (
          <li key={`${type} ${attempt}`} className="flex justify-between gap-3">
            <span>
              {jobsText.event[type] ?? type}
              {job.attempts > 1 && attempt > 0 && (
                <span className="text-muted"> {jobsText.attempt(attempt, job.max_attempts)}</span>
              )}
              {reason !== undefined && <span className="text-muted block">{reason}</span>}
            </span>
            <span className="text-muted">
              <Time at={at} />
            </span>
          </li>
        ))}
      </ol>
    </Section>
  )
}
