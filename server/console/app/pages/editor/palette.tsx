import { useMutation } from '@tanstack/react-query'
import { type DragEvent, useState } from 'react'
import { api, at, dataOf, useAnswer } from '../../api/client.ts'
import { Button } from '../../components/button.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { SearchField, SelectField } from '../../components/fields.tsx'
import { Failed } from '../../components/page.tsx'
import { editorText } from '../../text/editor.ts'
import { isWait } from '../../text/tasks.ts'
import { newNode } from './document/graph.ts'
import type { TaskFacts } from './document/schema.ts'
import { insertWorkflow, sourceOf } from './document/source.ts'
import { parseWorkflow } from './document/workflow-document.ts'
import { useEditor } from './editor-context.ts'

const groups = ['text', 'image', 'video', 'audio', 'step', 'wait'] as const
const groupOf = ({ id, needs_model, category }: TaskFacts) => (needs_model ? category : isWait(id) ? 'wait' : 'step')

/** The type of what is dragged from the palette: the id of a task. */
export const taskDragType = 'application/x-infer-task'

/** The tasks by what they make, then those without a model; one that no model does is offered last. */
export function Palette({ close }: { close: () => void }) {
  const { tasks, workflow, apply, select } = useEditor()
  const [search, setSearch] = useState('')
  const words = search.toLowerCase().split(/\s+/).filter(Boolean)
  const found = [...tasks.values()]
    .filter(({ id, title, description }) =>
      words.every(word => `${id} ${title} ${description}`.toLowerCase().includes(word)),
    )
    .sort((a, b) => Number(b.models.length > 0) - Number(a.models.length > 0))
  const add = (task: TaskFacts) => {
    const { id, edit } = newNode(task, workflow.nodes)
    apply(edit)
    select(id)
    close()
  }
  const drag = ({ dataTransfer }: DragEvent, task: TaskFacts) => {
    dataTransfer.setData(taskDragType, task.id)
    dataTransfer.effectAllowed = 'copy'
    // The graph is behind the dialog. Only after this event does the browser have what it shows at the pointer.
    setTimeout(close)
  }
  return (
    <Dialog title={editorText.palette} close={close} wide>
      <p className="text-muted max-md:hidden">{editorText.paletteHint}</p>
      <SearchField value={search} change={setSearch} label={editorText.searchTasks} />
      {found.length === 0 && <p className="text-muted">{editorText.noTask}</p>}
      {groups.map(group => {
        const here = found.filter(task => groupOf(task) === group)
        return (
          here.length > 0 && (
            <section key={group} aria-label={editorText.categories[group]}>
              <h3 className="mb-1 font-medium">{editorText.categories[group]}</h3>
              <ul className="grid gap-2 sm:grid-cols-2">
                {here.map(task => (
                  <li key={task.id}>
                    <button
                      type="button"
                      draggable
                      onDragStart={event => drag(event, task)}
                      onClick={() => add(task)}
                      className="border-line hover:bg-raised h-full w-full rounded-md border p-2 text-left"
                    >
                      <span className="flex justify-between gap-2">
                        <span className="font-medium">{task.title}</span>
                        {task.needs_model && (
                          <span className="text-muted text-xs">{editorText.modelsOf(task.models.length)}</span>
                        )}
                      </span>
                      <span className="text-muted block text-xs">{task.description}</span>
                    </button>
                  </li>
                ))}
              </ul>
            </section>
          )
        )
      })}
      {words.length === 0 && <OtherWorkflow close={close} />}
    </Dialog>
  )
}

/** Copies the nodes of a stored workflow into this one. */
function OtherWorkflow({ close }: { close: () => void }) {
  const { workflow, apply } = useEditor()
  const [id, setId] = useState('')
  const { data } = useAnswer(['workflows', 'choice'], () =>
    api.GET('/api/workflows', { params: { query: { limit: 100 } } }),
  )
  const insert = useMutation({
    mutationFn: async () => (await dataOf(api.GET('/api/workflows/{id}', at({ id })))).workflow,
    onSuccess: read => {
      const other = parseWorkflow(sourceOf(read)).workflow
      apply(insertWorkflow(workflow, other, read.dag?.nodes ?? {}))
      close()
    },
  })
  if (!data || data.workflows.length === 0) return null
  return (
    <section aria-label={editorText.insertWorkflow} className="flex flex-wrap items-end gap-2">
      {insert.error && (
        <div className="w-full">
          <Failed failure={insert.error} />
        </div>
      )}
      <div className="min-w-0 flex-1">
        <SelectField
          label={editorText.insertWorkflow}
          hint={editorText.insertWorkflowHint}
          value={id}
          none={editorText.chooseWorkflow}
          options={data.workflows}
          change={setId}
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
