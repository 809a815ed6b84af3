import { useMutation } from '@tanstack/react-query'
import { X } from 'lucide-react'
import { type DragEvent, type KeyboardEvent, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react'
import { api, at, dataOf } from '../../api/client.ts'
import { useWorkflowChoice } from '../../api/workflow-choice.ts'
import { Button, IconButton } from '../../components/button.tsx'
import { isTask, kindOfTask } from '../../components/colours.ts'
import { SearchField } from '../../components/fields.tsx'
import { KindIcon } from '../../components/marks.tsx'
import type { Choice } from '../../components/matching.ts'
import { Failed } from '../../components/page.tsx'
import { PickerField } from '../../components/picker-field.tsx'
import { editorText } from '../../text/editor.ts'
import { isWait } from '../../text/tasks.ts'
import { entryOf, type PortFacts } from './document/connections.ts'
import { together } from './document/edits.ts'
import { editOfConnection, newNode, type SeenPlaces } from './document/graph.ts'
import type { TaskFacts } from './document/schema.ts'
import { insertWorkflow, sourceOf } from './document/source.ts'
import { parseWorkflow } from './document/workflow-document.ts'
import { useEditor } from './editor-context.ts'

const groups = ['text', 'image', 'video', 'audio', 'step', 'wait'] as const
const groupOf = ({ id, needs_model, category }: TaskFacts) => (needs_model ? category : isWait(id) ? 'wait' : 'step')

/** The type of what is dragged from the drawer: the id of a task. */
export const taskDragType = 'application/x-infer-task'

/** Where a new node comes from, if not from the button: a place in the graph, or a line that was drawn to there. */
export interface Adding {
  at: { x: number; y: number }
  /** Where the cards are seen, which stay there. */
  seen: SeenPlaces
  /** The port from which the line was drawn: only tasks with a port that fits it are offered. */
  drawn?: PortFacts
}

/** Moves the focus from the search to the tasks and among them. */
function moveFocus(event: KeyboardEvent<HTMLElement>): void {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
  if (step === undefined || event.target instanceof HTMLSelectElement) return
  const stops = [...event.currentTarget.querySelectorAll<HTMLElement>('[type=search], [data-task]')]
  const next = stops[stops.indexOf(event.target as HTMLElement) + step]
  if (!next) return
  event.preventDefault()
  next.focus()
}

/**
 * The tasks in groups: by what they make, then those that need no model. In each group tasks that no model does come last. It
 * stands over the left of the graph, onto which a task can be dragged. Enter in the search takes the first task that is found.
 */
export function Drawer({ adding, close }: { adding: Partial<Adding>; close: () => void }) {
  const { tasks, workflow, apply, select } = useEditor()
  const [search, setSearch] = useState('')
  const panel = useRef<HTMLElement>(null)
  useLayoutEffect(() => {
    const [shown, before] = [panel.current!, document.activeElement]
    return () => {
      if (before instanceof HTMLElement && shown.contains(document.activeElement)) before.focus()
    }
  }, [])
  // Also when it is opened for another place.
  useEffect(() => panel.current?.querySelector('input')?.focus(), [adding])
  const { at, seen, drawn } = adding
  const words = search.toLowerCase().split(/\s+/).filter(Boolean)
  const offered = useMemo(
    () =>
      [...tasks.values()]
        .filter(task => !drawn || entryOf(drawn, task) !== undefined)
        .sort((a, b) => Number(b.models.length > 0) - Number(a.models.length > 0)),
    [tasks, drawn],
  )
  const found = offered.filter(({ id, title, description }) =>
    words.every(word => `${id} ${title} ${description}`.toLowerCase().includes(word)),
  )
  const ordered = groups.flatMap(group => found.filter(task => groupOf(task) === group))
  const add = (task: TaskFacts) => {
    const entry = drawn && entryOf(drawn, task)
    const { id, edit } = newNode(task, workflow.nodes, at && seen && { at, seen }, drawn?.isOutput)
    const line =
      drawn &&
      entry !== undefined &&
      (drawn.isOutput
        ? editOfConnection(drawn.card, drawn.handle, id, entry)
        : editOfConnection(id, entry, drawn.card, drawn.handle))
    apply(line ? together(edit, line) : edit)
    select(id)
    close()
  }
  const drag = ({ dataTransfer }: DragEvent, task: TaskFacts) => {
    dataTransfer.setData(taskDragType, task.id)
    dataTransfer.effectAllowed = 'copy'
    // The graph needs its space. Only after this event does the browser have what it shows at the pointer.
    setTimeout(close)
  }
  const press = (event: KeyboardEvent<HTMLElement>) => {
    // The list of workflows has a search of its own.
    if (event.defaultPrevented) return
    if (event.key === 'Escape') {
      event.preventDefault()
      close()
    } else if (event.key === 'Enter' && event.target instanceof HTMLInputElement && ordered[0]) {
      event.preventDefault()
      add(ordered[0])
    } else moveFocus(event)
  }
  return (
    <section
      ref={panel}
      role="dialog"
      data-covers="left"
      aria-label={editorText.drawer}
      onKeyDown={press}
      className="bg-surface border-line animate-panel z-20 flex flex-col max-lg:fixed max-lg:inset-0 lg:absolute lg:inset-y-3 lg:left-3 lg:w-80 lg:rounded-lg lg:border lg:shadow-md"
    >
      <div className="border-line space-y-2 border-b p-3">
        <div className="flex items-center justify-between gap-2">
          <h2 className="font-semibold break-words">{drawn ? editorText.drawerFits(drawn.name) : editorText.drawer}</h2>
          <IconButton icon={X} label={editorText.closeDrawer} onClick={close} />
        </div>
        <SearchField value={search} change={setSearch} label={editorText.searchTasks} />
        {!drawn && <p className="text-muted text-xs max-lg:hidden">{editorText.drawerHint}</p>}
      </div>
      <div className="min-h-0 flex-1 space-y-3 overflow-y-auto p-3">
        {found.length === 0 && (
          <p className="text-muted">
            {drawn && words.length === 0 ? editorText.noTaskFits(drawn.name) : editorText.noTask}
          </p>
        )}
        {groups.map(group => {
          const here = found.filter(task => groupOf(task) === group)
          return (
            here.length > 0 && (
              <section key={group} aria-label={editorText.categories[group]}>
                <h3 className="mb-1 font-medium">{editorText.categories[group]}</h3>
                <ul className="grid gap-1 max-lg:sm:grid-cols-2">
                  {here.map(task => (
                    <li key={task.id}>
                      <button
                        type="button"
                        data-task
                        draggable={!drawn}
                        onDragStart={event => drag(event, task)}
                        onClick={() => add(task)}
                        title={task.description}
                        className="border-line hover:bg-raised h-full w-full rounded-md border p-2 text-left"
                      >
                        <span className="flex justify-between gap-2">
                          <span className="flex min-w-0 items-center gap-1.5 font-medium">
                            <TaskKind task={task} />
                            {task.title}
                          </span>
                          {task.needs_model && (
                            <span className="text-muted text-xs">{editorText.modelsOf(task.models.length)}</span>
                          )}
                        </span>
                        <span className="text-muted line-clamp-2 text-xs">{task.description}</span>
                      </button>
                    </li>
                  ))}
                </ul>
              </section>
            )
          )
        })}
        {words.length === 0 && !drawn && <OtherWorkflow close={close} />}
      </div>
    </section>
  )
}

function TaskKind({ task: { id } }: { task: TaskFacts }) {
  const kind = isTask(id) ? kindOfTask(id) : undefined
  return kind && <KindIcon kind={kind} className="size-3.5" />
}

/** Copies the nodes of a stored workflow into this one. */
function OtherWorkflow({ close }: { close: () => void }) {
  const { workflow, apply } = useEditor()
  const [chosen, choose] = useState<Choice>()
  const id = chosen?.id ?? ''
  const { page, isCut, typed } = useWorkflowChoice()
  const insert = useMutation({
    mutationFn: async () => (await dataOf(api.GET('/api/workflows/{id}', at({ id })))).workflow,
    onSuccess: read => {
      const other = parseWorkflow(sourceOf(read)).workflow
      apply(insertWorkflow(workflow, other, read.dag?.nodes ?? {}))
      close()
    },
  })
  const workflows = page?.workflows ?? []
  // A search that finds nothing is no reason to end it.
  const [hasSome, setSome] = useState(false)
  if (!hasSome && workflows.length === 0) return null
  if (!hasSome) setSome(true)
  return (
    <section aria-label={editorText.insertWorkflow} className="flex flex-wrap items-end gap-2">
      {insert.error && (
        <div className="w-full">
          <Failed failure={insert.error} />
        </div>
      )}
      <div className="min-w-0 flex-1">
        <PickerField
          label={editorText.insertWorkflow}
          hint={editorText.insertWorkflowHint}
          value={id}
          none={editorText.chooseWorkflow}
          choices={chosen && workflows.every(one => one.id !== id) ? [chosen, ...workflows] : workflows}
          typed={typed}
          isCut={isCut}
          change={next => choose(workflows.find(one => one.id === next))}
        />
      </div>
      <Button
        disabled={id === ''}
        busy={insert.isPending}
        onClick={() => insert.mutate()}
        className="mb-5"
        label={editorText.insert}
      />
    </section>
  )
}
