import { useMutation } from '@tanstack/react-query'
import { useMemo, useRef } from 'react'
import { api, hasEnded, useAnswer } from '../../../api/client.ts'
import type { JsonSchema } from '../../../api/schema.ts'
import { JobStatus } from '../../../components/badge.tsx'
import { Button, TextLink } from '../../../components/button.tsx'
import { Checkbox } from '../../../components/fields.tsx'
import { costText, countText, durationText, sentenceText } from '../../../components/format.ts'
import { Empty, Failed, Section } from '../../../components/page.tsx'
import { filesOf } from '../../../components/result/result-facts.ts'
import { TaskResult } from '../../../components/result/task-result.tsx'
import { UnfinishedImage } from '../../../components/result/unfinished-image.tsx'
import { playgroundText as text } from '../../../text/playground.ts'
import type { TaskChoice } from '../choices.ts'
import { type PanelProps, RequestForm, RunButton, TaskForm, useForm } from '../form/task-form.tsx'
import { useKept } from '../kept.ts'
import { Samples } from '../samples-view.tsx'
import { cancelJob, type Job, type Run, useRuns } from './runs.ts'

/** The results of each model, with a heading of their own. */
function Results({ runs }: { runs: readonly Run[] }) {
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
            {text.inLibrary} <TextLink href="/library" className="underline" label={text.toLibrary} />
          </p>
        )}
      </div>
    </Section>
  ))
}

const aspectRatios = ['16:9', '9:16', '1:1'] as const

/** The form of a task that is run as a job, its result, and the same as code. */
export function TaskPanel(props: PanelProps) {
  const { task, models, origin } = props
  const { form, request, check, setErrors } = useForm(props)
  const { fields } = form
  const [formats, setFormats] = useKept<readonly string[]>(task.id, 'formats', origin, () => [])
  const { runs, start, busy } = useRuns(task.id, origin)
  const voices = useVoices(
    models[0]!.id,
    fields.some(({ name }) => name === 'voice'),
  )
  const result = useRef<HTMLDivElement>(null)
  const inputs = useMemo(() => inputsOf(task, request), [task, request])
  const slug = models[0]!.slugs[task.id]
  const inOneGo = useMemo(
    () => (slug !== undefined && formats.length > 0 ? { slug, ratios: formats } : undefined),
    [slug, formats],
  )
  const severalShapes = task.category === 'video' && fields.some(({ name }) => name === 'aspect_ratio')

  async function run(): Promise<void> {
    if (!check()) return
    const failures = await start(models, withPreviews(task, inputs), formats)
    // The server names the field: it is shown there, and not only above the result.
    for (const { param, message } of failures) {
      const name = fieldNamed(param)
      if (name !== undefined && fields.some(field => field.name === name))
        setErrors(now => ({ ...now, [name]: message }))
    }
    // What was asked for must be seen: on a narrow screen the result is far below the form.
    const { top } = result.current!.getBoundingClientRect()
    if (top > innerHeight / 2) result.current!.scrollIntoView({ block: 'start' })
  }

  const comparing = models.length > 1 && runs.length > 1
  const results = <Results runs={runs} />
  const samples = <Samples task={task} model={models[0]!.id} inputs={inputs} formats={inOneGo} />
  return (
    <div className="grid content-start gap-6 lg:grid-cols-2">
      <RequestForm run={() => void run()}>
        <TaskForm {...form} suggestions={{ voice: voices }} />
        {severalShapes && <Formats chosen={formats} choose={setFormats} />}
        <RunButton models={models} busy={busy} />
      </RequestForm>
      {comparing ? (
        <>
          <div ref={result} className="grid scroll-mt-16 gap-x-6 md:grid-cols-2 lg:order-last lg:col-span-2">
            {results}
          </div>
          {samples}
        </>
      ) : (
        <div ref={result} className="min-w-0 scroll-mt-16">
          {results}
          {samples}
        </div>
      )}
    </div>
  )
}

const Formats = ({ chosen, choose }: { chosen: readonly string[]; choose: (formats: readonly string[]) => void }) => (
  <fieldset className="space-y-2">
    <legend className="text-sm font-medium">{text.formats}</legend>
    <p className="text-muted text-xs">{text.formatsHint}</p>
    <div className="flex flex-wrap gap-4">
      {aspectRatios.map(ratio => (
        <Checkbox
          key={ratio}
          label={text.formatNames[ratio]}
          checked={chosen.includes(ratio)}
          change={checked => choose(aspectRatios.filter(one => (one === ratio ? checked : chosen.includes(one))))}
        />
      ))}
    </div>
  </fieldset>
)

/** `inputs.image_url` and `prompt[0]` → the name of the field. */
const fieldNamed = (param: string | undefined): string | undefined =>
  param === undefined ? undefined : (aliases[bare(param)] ?? bare(param))
const bare = (param: string): string => param.replace(/^inputs\./, '').replace(/[.[].*$/, '')
const aliases: Readonly<Record<string, string>> = { file_id: 'url', aspect_ratios: 'aspect_ratio' }

/** A transcription names a stored file by another field than an address. */
function inputsOf({ input_schema }: TaskChoice, request: Record<string, unknown>): Record<string, unknown> {
  const { properties = {} } = input_schema as JsonSchema
  if (!('file_id' in properties) || !String(request.url).startsWith('file-')) return request
  const { url, ...others } = request
  return { file_id: url, ...others }
}

/** The page shows images while they are made. That changes no result, so the samples do not have it. */
const withPreviews = ({ input_schema }: TaskChoice, inputs: Record<string, unknown>): Record<string, unknown> =>
  'previews' in ((input_schema as JsonSchema).properties ?? {}) ? { ...inputs, previews: 3 } : inputs

/** The voices of a model that speaks. */
function useVoices(model: string, speaks: boolean): string[] | undefined {
  const { data } = useAnswer(['playground', 'voices'], () => api.GET('/api/voice/models'), {
    enabled: speaks,
    staleTime: 60_000,
  })
  return data?.models.find(({ model_id }) => model_id === model)?.voices.map(({ id }) => id)
}

/** A job from its creation to its result, and what it took. */
function RunView({ job, currency }: { job: Job; currency: string }) {
  const { id, status, progress, waiting_for, error, metrics } = job
  const live = !hasEnded(job)
  const cancel = useMutation({ mutationFn: () => cancelJob(id) })
  return (
    <div className="space-y-3">
      <p className="flex flex-wrap items-center gap-2" role="status">
        <JobStatus status={status} />
        {live && progress !== null && progress > 0 && <span>{text.progress(Math.round(progress * 100))}</span>}
        {!live && metrics.run_ms !== null && <span>{text.inTime(durationText(metrics.run_ms))}</span>}
        <Figures job={job} currency={currency} />
        <TextLink href={`/jobs/${id}`} className="underline" label={text.openJob} />
        {live && <Button small danger busy={cancel.isPending} onClick={() => cancel.mutate()} label={text.cancel} />}
      </p>
      {live && <progress max={1} value={progress ?? undefined} aria-label={text.running} className="h-2 w-full" />}
      {live && <UnfinishedImage job={job} />}
      {live && cancel.error && <Failed failure={cancel.error} />}
      {live && waiting_for && <p className="text-muted">{sentenceText(waiting_for.detail)}</p>}
      {error && !live && <Failed failure={new Error(error.message)} />}
      {status === 'completed' && <TaskResult result={job.result} inputs={job.inputs} />}
    </div>
  )
}

function Figures({ job: { usage, cost, metrics }, currency }: { job: Job; currency: string }) {
  const all = usage
    ? Object.entries(text.usage).flatMap(([name, words]) => {
        const amount = usage[name as keyof typeof text.usage]
        return amount > 0 ? [words(countText(Math.round(amount * 10) / 10))] : []
      })
    : []
  if (cost !== null && cost > 0) all.push(text.cost(costText(cost, currency)))
  if (metrics.queue_ms !== null && metrics.queue_ms >= 1_000) all.unshift(text.waited(durationText(metrics.queue_ms)))
  return all.length === 0 ? null : <span className="text-muted">{all.join(' · ')}</span>
}
