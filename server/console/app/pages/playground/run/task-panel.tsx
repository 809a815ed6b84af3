import { useCallback, useMemo, useRef, useState } from 'react'
import { ApiFailure, api, at, dataOf, queryClient, useAnswer } from '../../../api/client.ts'
import type { JsonSchema } from '../../../api/schema.ts'
import { Failed } from '../../../components/page.tsx'
import { playgroundText } from '../../../text/playground.ts'
import type { TaskChoice } from '../choices.ts'
import { type PanelProps, RequestForm, RunButton, TaskForm, useForm } from '../form/task-form.tsx'
import { useKept } from '../kept.ts'
import { Samples } from '../samples-view.tsx'
import { type FeedRun, type JobSummary, seedsFor, submissionsOf } from './feed.ts'
import { FeedView } from './feed-view.tsx'
import { newRunId, newSeed } from './random.ts'
import { Formats, Variations } from './several.tsx'
import { useFeed } from './use-feed.ts'

/** The form of a task that is run as jobs, its runs, and the same request as code. */
export function TaskPanel(props: PanelProps) {
  const { task, models, origin } = props
  const { form, request, check, setErrors, fill } = useForm(props)
  const { fields } = form
  const [formats, setFormats] = useKept<readonly string[]>(task.id, 'formats', origin, () => [])
  const [variations, setVariations] = useKept(task.id, 'variations', origin, () => 1)
  const feed = useFeed(task.id)
  const { entries, send, discard } = feed.outbox
  const [failures, setFailures] = useState<readonly Error[]>([])
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
  const has = (field: string) => fields.some(({ name }) => name === field)
  const hasSeed = has('seed')
  const isVisual = task.category === 'image' || task.category === 'video'

  async function submit(submissions: Parameters<typeof send>[0]): Promise<void> {
    setFailures([])
    const refused = await send(submissions)
    // The server names the field: it is shown there, and not only above the results.
    for (const failure of refused) {
      const name = failure instanceof ApiFailure ? fieldNamed(failure.param) : undefined
      if (name !== undefined && has(name)) setErrors(now => ({ ...now, [name]: failure.message }))
    }
    // All jobs of a run may be refused for one reason.
    setFailures(refused.filter(({ message }, at) => refused.findIndex(one => one.message === message) === at))
  }

  function run(): void {
    if (!check()) return
    const seeds = hasSeed && isVisual ? seedsFor(variations, inputs.seed, newSeed) : []
    const wanted = { run: newRunId(), task: task.id, models: models.map(({ id }) => id), seeds }
    void submit(submissionsOf({ ...wanted, inputs: withPreviews(task, inputs), ratios: formats }))
    // What was asked for must be seen: on a narrow screen the results are far below the form.
    const { top } = result.current!.getBoundingClientRect()
    if (top > innerHeight / 2) result.current!.scrollIntoView({ block: 'start' })
  }

  async function again({ jobs }: FeedRun, vary: boolean): Promise<void> {
    const id = newRunId()
    try {
      const inputsOfJobs = await Promise.all(jobs.map(inputsOfJob))
      await submit(
        jobs.map(({ model_id: model }, place) => ({
          key: `${id}.${place}`,
          task: task.id,
          model,
          inputs: { ...inputsOfJobs[place], ...(vary ? { seed: newSeed() } : {}) },
        })),
      )
    } catch (thrown) {
      setFailures([thrown as Error])
    }
  }

  const latest = useRef({ again, submit, fill, discard })
  latest.current = { again, submit, fill, discard }
  const actions = useMemo(
    () => ({
      again: (run: FeedRun, vary: boolean) => void latest.current.again(run, vary),
      fill: (job: JobSummary) =>
        void inputsOfJob(job).then(
          filled => latest.current.fill(formInputs(filled)),
          (failure: Error) => setFailures([failure]),
        ),
      send: (submissions: Parameters<typeof submit>[0]) => void latest.current.submit(submissions),
      discard: (key: string) => latest.current.discard(key),
    }),
    [],
  )
  const currencies = useMemo(() => new Map(models.map(({ id, currency }) => [id, currency])), [models])
  const currencyOf = useCallback((model: string) => currencies.get(model) ?? '', [currencies])

  return (
    <div className="grid content-start gap-6 lg:grid-cols-2">
      <div className="min-w-0">
        <RequestForm run={run}>
          <TaskForm {...form} suggestions={{ voice: voices }} />
          {task.category === 'video' && has('aspect_ratio') && <Formats chosen={formats} choose={setFormats} />}
          {isVisual && hasSeed && <Variations count={variations} choose={setVariations} />}
          <RunButton models={models} busy={entries.some(one => one.task === task.id && one.message === '')} />
        </RequestForm>
        <Samples task={task} model={models[0]!.id} inputs={inputs} formats={inOneGo} />
      </div>
      <div ref={result} className="min-w-0 scroll-mt-16 space-y-4">
        {failures.map(({ message }) => (
          <Failed key={message} failure={new Error(message)} />
        ))}
        <FeedView feed={feed} actions={actions} hasSeed={hasSeed} currencyOf={currencyOf} />
      </div>
    </div>
  )
}

/** Reads the inputs of a job. Rejects if they were not kept. */
async function inputsOfJob({ id }: JobSummary): Promise<Record<string, unknown>> {
  const { inputs } = await queryClient.fetchQuery({
    queryKey: ['playground', 'job', id, 'inputs'],
    queryFn: () => dataOf(api.GET('/api/jobs/{id}', at({ id }))),
  })
  if (inputs === null || typeof inputs !== 'object') throw new Error(playgroundText.inputsGone)
  return inputs as Record<string, unknown>
}

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

/** The same the other way round, for the form. */
const formInputs = ({ file_id, ...others }: Record<string, unknown>): Record<string, unknown> =>
  file_id === undefined ? others : { ...others, url: file_id }

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
