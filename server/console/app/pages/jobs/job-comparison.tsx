import type { ReactNode } from 'react'
import { Link } from 'wouter'
import type { Schema } from '../../api/client.ts'
import { useJob } from '../../api/job.ts'
import { JobStatus } from '../../components/badge.tsx'
import { Cost } from '../../components/cost.tsx'
import { ValueDifferenceList } from '../../components/difference/value-difference-list.tsx'
import { knownDuration } from '../../components/format.ts'
import { BackLink, PageHeading, Queried, Section } from '../../components/page.tsx'
import { useAddress } from '../../components/use-address.ts'
import { jobsText } from '../../text/jobs.ts'
import { taskName } from '../../text/tasks.ts'
import { JobResult } from './job-parts.tsx'
import { usedText } from './used-text.ts'

const { comparison: text, columns: names } = jobsText

/** Two jobs side by side: what they have made, and what differs in their inputs. */
export function JobComparison() {
  const [params] = useAddress()
  const [first, second] = [useJob(params.get('first') ?? ''), useJob(params.get('second') ?? '')]
  return (
    <>
      <BackLink page="jobs" />
      <PageHeading title={text.title} about={text.about} />
      <Queried query={first} gone={jobsText.gone}>
        {one => (
          <Queried query={second} gone={jobsText.gone}>
            {other => <Compared jobs={[one, other]} />}
          </Queried>
        )}
      </Queried>
    </>
  )
}

const rows: readonly [name: string, show: (job: Schema<'Job'>) => ReactNode][] = [
  [names.status, job => <JobStatus status={job.status} progress={job.progress} />],
  [names.task, job => taskName(job.task)],
  [names.model, job => job.model_id],
  [jobsText.factNames.waited, job => knownDuration(job.metrics.queue_ms)],
  [jobsText.factNames.ran, job => knownDuration(job.metrics.run_ms)],
  [names.used, job => usedText(job.usage)],
  [names.cost, job => (job.cost ? <Cost of={job.cost} /> : '–')],
]

function Compared({ jobs }: { jobs: readonly [Schema<'Job'>, Schema<'Job'>] }) {
  const [first, second] = jobs
  return (
    <>
      <div className="border-line bg-surface mb-6 overflow-x-auto rounded-lg border">
        <table aria-label={text.title} className="w-full text-left">
          <thead className="text-muted border-line border-b text-xs">
            <tr>
              <th scope="col" className="px-3 py-2 font-medium">
                {text.of}
              </th>
              {jobs.map((job, at) => (
                <th key={at} scope="col" className="px-3 py-2 font-medium">
                  <Link href={`/jobs/${job.id}`} title={job.id} className="text-accent hover:underline">
                    {text.names[at]}
                  </Link>
                </th>
              ))}
            </tr>
          </thead>
          <tbody className="divide-line divide-y">
            {rows.map(([name, show]) => (
              <tr key={name}>
                <th scope="row" className="text-muted px-3 py-1.5 font-normal">
                  {name}
                </th>
                {jobs.map((job, at) => (
                  <td key={at} className="px-3 py-1.5 break-words tabular-nums">
                    {show(job)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <div className="grid gap-x-6 md:grid-cols-2">
        {jobs.map((job, at) => (
          <Section key={at} title={text.results[at]!}>
            <JobResult job={job} />
          </Section>
        ))}
      </div>
      <Section title={text.inputs}>
        <ValueDifferenceList before={first.inputs} after={second.inputs} same={text.sameInputs} />
      </Section>
    </>
  )
}
