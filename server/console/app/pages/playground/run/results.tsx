import { Link } from 'wouter'
import { Failed } from '../../../components/failed.tsx'
import { Empty, Section } from '../../../components/page-heading.tsx'
import { filesOf } from '../../../components/result/result-facts.ts'
import { playgroundText as text } from '../../../text/playground.ts'
import { RunView } from './run-view.tsx'
import type { Run } from './use-runs.ts'

/** The results of each model, with a heading of their own. */
export function Results({ runs }: { runs: readonly Run[] }) {
  if (runs.length === 0)
    return (
      <Section title={text.result}>
        <Empty title={text.none} />
      </Section>
    )
  return runs.map(({ model, jobs, failure }) => (
    <Section key={model.id} title={runs.length > 1 ? text.resultOf(model.id) : text.result}>
      <div className="bg-surface border-line space-y-6 rounded-lg border p-4">
        {failure && <Failed failure={failure} />}
        {jobs.map(job => (
          <RunView key={job.id} job={job} currency={model.currency} />
        ))}
        {jobs.some(({ result }) => filesOf(result).length > 0) && (
          <p className="text-muted text-xs">
            {text.inLibrary}{' '}
            <Link href="/library" className="text-accent underline">
              {text.toLibrary}
            </Link>
          </p>
        )}
      </div>
    </Section>
  ))
}
