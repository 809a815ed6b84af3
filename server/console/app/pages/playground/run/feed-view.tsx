import { Dices, Repeat, SlidersHorizontal } from 'lucide-react'
import { memo } from 'react'
import { promptOf } from '../../../../../../core/store/job-prompt.ts'
import { Button, TextLink } from '../../../components/button.tsx'
import { Empty, Failed, MoreButton, Section } from '../../../components/page.tsx'
import { filesOf } from '../../../components/result/result-facts.ts'
import { Time } from '../../../components/time.tsx'
import { playgroundText as text } from '../../../text/playground.ts'
import type { FeedRun, JobSummary } from './feed.ts'
import { JobView, UnansweredView } from './job-view.tsx'
import type { Unanswered } from './outbox.ts'
import { type useFeed, useFeedJob } from './use-feed.ts'

/** What can be done with a run; each stays the same from render to render. */
export interface RunActions {
  /** Runs the same requests once more, with other seeds if `vary`. */
  again: (run: FeedRun, vary: boolean) => void
  /** Fills the form with the request of a job. */
  fill: (job: JobSummary) => void
  send: (submissions: readonly Unanswered[]) => void
  discard: (key: string) => void
}

interface FeedProps {
  feed: ReturnType<typeof useFeed>
  actions: RunActions
  /** Whether the task has a seed. */
  hasSeed: boolean
  currencyOf: (model: string) => string
}

/** The runs of a task, newest first. */
export function FeedView({ feed: { pages, runs }, ...shared }: FeedProps) {
  const { error, isLoading } = pages
  return (
    <Section title={text.results}>
      <div className="space-y-4">
        {error && <Failed failure={error} retry={() => void pages.refetch()} />}
        {runs.map(run => (
          <RunView key={run.id} run={run} {...shared} />
        ))}
        {runs.length === 0 && !isLoading && !error && <Empty title={text.none} />}
        <MoreButton query={pages} />
      </div>
    </Section>
  )
}

interface RunProps extends Omit<FeedProps, 'feed'> {
  run: FeedRun
}

const RunView = memo(function RunView({ run, actions, hasSeed, currencyOf }: RunProps) {
  const { jobs, unanswered } = run
  const [first] = jobs
  const models = [...new Set([...jobs.map(job => job.model_id), ...unanswered.map(one => one.model)])]
  const itemsOf = (model: string) => (
    <Items
      jobs={jobs.filter(job => job.model_id === model)}
      unanswered={unanswered.filter(one => one.model === model)}
      actions={actions}
      currency={currencyOf(model)}
    />
  )
  return (
    <article aria-label={text.runOf(models.join(', '))} className="bg-surface border-line rounded-lg border">
      <header className="border-line flex flex-wrap items-start gap-x-3 gap-y-1 border-b px-4 py-2">
        <div className="min-w-0 flex-1">
          {first ? <Title job={first} /> : <p className="truncate font-medium">{promptOf(unanswered[0]?.inputs)}</p>}
          <p className="text-muted text-xs">
            {models.join(', ')}
            {first && (
              <>
                {' · '}
                <Time at={first.created_at} />
              </>
            )}
          </p>
        </div>
        {first && (
          <div className="flex flex-wrap gap-1.5">
            <Button small icon={Repeat} onClick={() => actions.again(run, false)} label={text.again} />
            {hasSeed && <Button small icon={Dices} onClick={() => actions.again(run, true)} label={text.varySeed} />}
            <Button small icon={SlidersHorizontal} onClick={() => actions.fill(first)} label={text.useSettings} />
          </div>
        )}
      </header>
      <div className={`grid gap-6 p-4 ${models.length > 1 ? 'md:grid-cols-2' : ''}`}>
        {models.length === 1
          ? itemsOf(models[0]!)
          : models.map(model => (
              <section key={model} aria-label={text.resultOf(model)} className="min-w-0 space-y-2">
                <h3 className="font-medium">{text.resultOf(model)}</h3>
                {itemsOf(model)}
              </section>
            ))}
      </div>
    </article>
  )
})

/** What was asked for, in the words of the request. */
function Title({ job }: { job: JobSummary }) {
  const { data } = useFeedJob(job)
  const title = promptOf(data?.inputs) ?? undefined
  return (
    <p title={title} className="line-clamp-2 font-medium break-words">
      {title ?? (data ? text.untitledRun : '\u00a0')}
    </p>
  )
}

interface ItemsProps {
  jobs: readonly JobSummary[]
  unanswered: readonly Unanswered[]
  actions: RunActions
  currency: string
}

/** The jobs of one model; several are a grid. */
function Items({ jobs, unanswered, actions, currency }: ItemsProps) {
  const count = jobs.length + unanswered.length
  return (
    <div className={`grid content-start gap-4 ${count > 1 ? 'grid-cols-2' : ''} ${count > 4 ? 'xl:grid-cols-3' : ''}`}>
      {jobs.map(job => (
        <JobView key={job.id} summary={job} currency={currency} />
      ))}
      {unanswered.map(one => (
        <UnansweredView
          key={one.key}
          submission={one}
          send={() => actions.send([one])}
          discard={() => actions.discard(one.key)}
        />
      ))}
      {jobs[0] && <LibraryLink job={jobs[0]} wide={count > 1} />}
    </div>
  )
}

function LibraryLink({ job, wide }: { job: JobSummary; wide: boolean }) {
  const { data } = useFeedJob(job)
  if (filesOf(data?.result).length === 0) return null
  return (
    <p className={`text-muted text-xs ${wide ? 'col-span-full' : ''}`}>
      {text.inLibrary} <TextLink href="/library" className="underline" label={text.toLibrary} />
    </p>
  )
}
