import { useQuery } from '@tanstack/react-query'
import { type ComponentType, useMemo } from 'react'
import { Redirect, useSearchParams } from 'wouter'
import { api, at, dataOf, tasksQuery, useAnswer } from '../../api/client.ts'
import { ownUrl } from '../../components/addresses.ts'
import { ButtonLink } from '../../components/button.tsx'
import { modelOption, taskOption } from '../../components/options.tsx'
import { Empty, Failed, Loading, Notice, PageHeading, Queried } from '../../components/page.tsx'
import { PickerField } from '../../components/picker-field.tsx'
import { useAddress } from '../../components/use-address.ts'
import { playgroundText as text } from '../../text/playground.ts'
import { shellText } from '../../text/shell.ts'
import { type ModelChoice, modelChoice, type TaskChoice, taskForFile } from './choices.ts'
import { Completion } from './completion.tsx'
import { rememberPreview } from './form/files.tsx'
import type { PanelProps } from './form/task-form.tsx'
import type { Origin } from './kept.ts'
import { usePrompt } from './prompt.ts'
import { TaskPanel } from './run/task-panel.tsx'

/** What the address asks to begin with: a task, a model, the inputs of a job, or a file. */
interface Beginning {
  task?: string
  model?: string
  inputs?: Record<string, unknown>
  notice?: string
}

/** Tries every task of every model. */
export default function Playground() {
  const tasks = useQuery(tasksQuery)
  const models = useAnswer(['playground', 'models'], () => api.GET('/api/model-status'), { staleTime: 60_000 })
  return (
    <>
      <PageHeading title={shellText.pages.playground} about={text.about} />
      <Queried query={tasks} lines={6}>
        {({ tasks: all }) => (
          <Queried query={models} lines={6}>
            {({ models: states }) => <Prefilled tasks={all} models={states.map(modelChoice)} />}
          </Queried>
        )}
      </Queried>
    </>
  )
}

/** Reads what the address asks to begin with. */
function Prefilled({ tasks, models }: { tasks: readonly TaskChoice[]; models: readonly ModelChoice[] }) {
  const [search] = useSearchParams()
  const [job, file] = [search.get('job'), search.get('file')]
  const query = useQuery({
    queryKey: ['playground', 'beginning', job, file],
    queryFn: () => (job === null ? beginningOfFile(file!, tasks) : beginningOfJob(job)),
    enabled: job !== null || file !== null,
    staleTime: Number.POSITIVE_INFINITY,
  })
  if (query.isLoading) return <Loading lines={6} />
  const { notice, ...beginning } = query.data ?? {}
  return (
    <>
      {query.error && <Failed failure={query.error} />}
      {notice && (
        <Notice kind="info" className="mb-4">
          {notice}
        </Notice>
      )}
      <Choices key={`${job} ${file}`} tasks={tasks} models={models} beginning={beginning} origin={job ?? file ?? ''} />
    </>
  )
}

async function beginningOfJob(id: string): Promise<Beginning> {
  const params = { path: { id } }
  const { task, model_id: model, inputs } = await dataOf(api.GET('/api/jobs/{id}', { params }))
  if (inputs === null || typeof inputs !== 'object') return { task, model, notice: text.inputsGone }
  const { file_id, ...others } = inputs as Record<string, unknown>
  return { task, model, inputs: file_id ? { ...others, url: file_id } : others }
}

async function beginningOfFile(id: string, tasks: readonly TaskChoice[]): Promise<Beginning> {
  const item = await dataOf(api.GET('/api/library/{id}', at({ id })))
  const found = taskForFile(item.kind, tasks)
  if (!found) return { notice: text.noTaskForFile(item.kind) }
  rememberPreview(id, ownUrl(item.file.url))
  return { task: found.task.id, inputs: { [found.field]: id } }
}

interface ChoicesProps {
  tasks: readonly TaskChoice[]
  models: readonly ModelChoice[]
  beginning: Beginning
  origin: Origin
}

function Choices({ tasks, models, beginning, origin }: ChoicesProps) {
  const [search, change] = useAddress()
  const prompt = usePrompt(origin, beginning.inputs?.prompt)
  const offered = useMemo(() => tasks.filter(task => task.models.length > 0), [tasks])
  const wanted = search.get('task') ?? beginning.task
  const task = offered.find(({ id }) => id === wanted) ?? firstOf(offered, search.get('model') ?? beginning.model)
  if (!task)
    return (
      <Empty title={text.noModels}>
        <p>{text.noModelsHint}</p>
        <ButtonLink href="/models" label={text.toModels} />
      </Empty>
    )
  const able = models.filter(({ id }) => task.models.includes(id))
  const named = search.get('model') ?? beginning.model
  const model = able.find(({ id }) => id === named) ?? able[0]!
  const other = able.find(({ id }) => id === search.get('with') && id !== model.id)
  const Panel = panels[task.form.panel]
  const initial = task.id === beginning.task ? beginning.inputs : carriedFile(task, beginning)
  return (
    <>
      <div className="mb-6 grid gap-4 sm:grid-cols-3">
        <PickerField
          label={text.task}
          value={task.id}
          choices={offered.map(({ id }) => taskOption(id))}
          change={id => change({ task: id, with: '' })}
        />
        <PickerField
          label={text.model}
          value={model.id}
          choices={able.map(({ id, status }) => modelOption(id, status))}
          change={id => change({ model: id })}
        />
        {able.length > 1 && (
          <PickerField
            label={text.compare}
            value={other?.id ?? ''}
            none={text.compareNone}
            choices={able.filter(({ id }) => id !== model.id).map(({ id, status }) => modelOption(id, status))}
            change={id => change({ with: id })}
          />
        )}
      </div>
      {wanted !== undefined && wanted !== task.id && (
        <Notice kind="warning" className="mb-4">
          {text.taskAbsent(wanted)}
        </Notice>
      )}
      <Panel
        key={task.id}
        task={task}
        models={other ? [model, other] : [model]}
        initial={initial}
        origin={initial ? origin : ''}
        prompt={prompt}
      />
    </>
  )
}

/** The task that is shown first: one of the model, if the address names one. Conversations have a page of their own. */
const firstOf = (offered: readonly TaskChoice[], model: string | undefined): TaskChoice | undefined => {
  const able = offered.filter(({ models }) => model === undefined || models.includes(model))
  return able.find(({ form }) => form.panel !== 'conversation') ?? able[0] ?? offered[0]
}

/** Redirects to the page for conversations if the address names a job or a model; else links to it. */
function ToChat({ models, origin }: PanelProps) {
  const [search] = useSearchParams()
  const begun = { model: models[0]!.id, ...(search.get('job') === null ? {} : { job: origin }) }
  const href = `/chat?${new URLSearchParams(begun)}`
  if (search.get('job') !== null || search.get('model') !== null) return <Redirect to={href} replace />
  return (
    <Empty title={text.chatPage}>
      <p>{text.chatPageHint}</p>
      <ButtonLink primary href={href} label={text.toChat} />
    </Empty>
  )
}

const panels: Readonly<Record<TaskChoice['form']['panel'], ComponentType<PanelProps>>> = {
  conversation: ToChat,
  text: Completion,
  fields: TaskPanel,
}

/** A file stays chosen when another task takes such a file, too. */
function carriedFile(task: TaskChoice, { inputs = {} }: Beginning): Record<string, unknown> | undefined {
  const carried = Object.entries(inputs).filter(([name]) => task.media_fields.includes(name))
  return carried.length > 0 ? Object.fromEntries(carried) : undefined
}
