import { useQuery } from '@tanstack/react-query'
import { api, dataOf, type Schema } from '../../api/client.ts'
import { tasksQuery } from '../../api/tasks.ts'
import { Queried, useBeginning } from '../../components/page.tsx'
import { editorText } from '../../text/editor.ts'
import { emptySource, sourceOf } from './document/source.ts'
import { newWorkflow } from './drafts.ts'
import { Workbench } from './workbench.tsx'

const byId = ({ tasks }: Schema<'TaskList'>) => new Map(tasks.map(task => [task.id as string, task]))

/** The editor of a workflow. */
export default function Editor({ id }: { id: string }) {
  useBeginning()
  const tasks = useQuery({ ...tasksQuery, select: byId })
  const stored = useQuery({
    queryKey: ['workflows', 'edited', id],
    queryFn: async () => {
      if (id === newWorkflow) return { version: 0, source: emptySource(editorText.newName) }
      const { workflow } = await dataOf(api.GET('/api/workflows/{id}', { params: { path: { id } } }))
      return { version: workflow.version, source: sourceOf(workflow) }
    },
    // What is edited is replaced only by the person who edits.
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  })
  return (
    <Queried query={stored} lines={8}>
      {({ version, source }) => (
        <Queried query={tasks} lines={8}>
          {known => (
            <Workbench
              key={version}
              id={id}
              version={version}
              source={source}
              tasks={known}
              reload={() => void stored.refetch()}
            />
          )}
        </Queried>
      )}
    </Queried>
  )
}
