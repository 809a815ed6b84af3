import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { api, dataOf } from '../../api/client.ts'
import { useLiveEvents } from '../../api/live.ts'
import { Section } from '../../components/page-heading.tsx'
import { Queried } from '../../components/queried.tsx'
import { Time } from '../../components/time.tsx'
import { jobsText } from '../../text/jobs.ts'
import { hasEnded, type Job } from './job-detail.tsx'

/** What the engine has written while the job ran. */
export function JobLog({ job }: { job: Job }) {
  const { id } = job
  const query = useQuery({
    queryKey: ['jobs', 'log', id],
    queryFn: () => dataOf(api.GET('/api/jobs/{id}/logs', { params: { path: { id } } })),
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

interface Moment {
  type: string
  at: number
}

/** The events of a job: those that its times say, and those that arrive while the page is open. */
export function JobEvents({ job }: { job: Job }) {
  const [arrived, setArrived] = useState<readonly Moment[]>([])
  useLiveEvents(['job.'], events => {
    const own = events.filter(({ data }) => data.data?.job_id === job.id)
    if (own.length > 0)
      setArrived(now => [...now, ...own.map(({ type, data }) => ({ type, at: data.created_at as number }))])
  })
  const known: Moment[] = [
    { type: 'job.created', at: job.created_at },
    ...(job.started_at === null ? [] : [{ type: 'job.started', at: job.started_at }]),
    ...(hasEnded(job) && job.finished_at !== null ? [{ type: `job.${job.status}`, at: job.finished_at }] : []),
  ]
  const all = [...known, ...arrived.filter(({ type }) => !known.some(one => one.type === type))]
  return (
    <Section title={jobsText.events}>
      <ol className="space-y-1">
        {all
          .toSorted((a, b) => a.at - b.at)
          .map(({ type, at }, index) => (
            <li key={`${type} ${index}`} className="flex justify-between gap-3">
              <span>{jobsText.event[type] ?? type}</span>
              <span className="text-muted">
                <Time at={at} />
              </span>
            </li>
          ))}
      </ol>
    </Section>
  )
}
