import { Play } from 'lucide-react'
import { type FormEvent, useMemo, useRef, useState } from 'react'
import { Link } from 'wouter'
import { api } from '../../../api/client.ts'
import { useAnswer } from '../../../api/queries.ts'
import type { JsonSchema } from '../../../api/schema.ts'
import { Button } from '../../../components/button.tsx'
import { Checkbox } from '../../../components/fields.tsx'
import { Empty, Failed, Section } from '../../../components/page.tsx'
import { filesOf } from '../../../components/result/result-facts.ts'
import { playgroundText as text } from '../../../text/playground.ts'
import type { TaskChoice } from '../choices.ts'
import { TaskForm } from '../form/task-form.tsx'
import { type PanelProps, useForm } from '../form/use-form.ts'
import { Samples } from '../samples-view.tsx'
import { RunView } from './run-view.tsx'
import { type Run, useRuns } from './runs.ts'

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

const aspectRatios = ['16:9', '9:16', '1:1'] as const

/** The form of a task that is run as a job, its result, and the same as code. */
export function TaskPanel(props: PanelProps) {
  const { task, models } = props
  const { form, request, check, setErrors } = useForm(props)
  const { fields } = form
  const [formats, setFormats] = useState<readonly string[]>([])
  const { runs, start, busy } = useRuns()
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

  async function run(event: FormEvent): Promise<void> {
    event.preventDefault()
    if (!check()) return
    const failures = await start(task.id, models, withPreviews(task, inputs), formats)
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
      <Section title={text.request}>
        <form
          noValidate
          onSubmit={event => void run(event)}
          className="bg-surface border-line space-y-4 rounded-lg border p-4"
        >
          <TaskForm {...form} suggestions={{ voice: voices }} />
          {severalShapes && <Formats chosen={formats} choose={setFormats} />}
          <Button primary type="submit" icon={Play} busy={busy}>
            {busy ? text.running : models.length > 1 ? text.runTwo : text.run}
          </Button>
        </form>
      </Section>
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

function Formats({ chosen, choose }: { chosen: readonly string[]; choose: (formats: readonly string[]) => void }) {
  return (
    <fieldset className="space-y-2">
      <legend className="text-sm font-medium">{text.formats}</legend>
      <p className="text-muted text-xs">{text.formatsHint}</p>
      <div className="flex flex-wrap gap-4">
        {aspectRatios.map(ratio => (
          <Checkbox
            key={ratio}
            label={text.formatNames[ratio]!}
            checked={chosen.includes(ratio)}
            change={checked => choose(aspectRatios.filter(one => (one === ratio ? checked : chosen.includes(one))))}
          />
        ))}
      </div>
    </fieldset>
  )
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
