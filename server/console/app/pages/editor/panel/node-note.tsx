import { useMutation } from '@tanstack/react-query'
import { Pin, PinOff } from 'lucide-react'
import { api, at, dataOf } from '../../../api/client.ts'
import { announce } from '../../../components/announcements.tsx'
import { Button } from '../../../components/button.tsx'
import { editorText } from '../../../text/editor.ts'
import { nodePath } from '../document/edits.ts'
import type { WorkflowNode } from '../document/workflow-document.ts'
import { useEditor } from '../editor-context.ts'
import { useMembers } from './properties.tsx'
import { JsonField } from './value-field.tsx'

/** Characters of JSON: the server takes no longer pins. */
const maxPinLength = 256 << 10

/** The members of a node that have a field here. */
export const noteMembers = ['note', 'pin'] as const

/** What people should know of a node, and the result that it has without running. */
export function NodeNote({ node }: { node: WorkflowNode }) {
  const { readOnly } = useEditor()
  const { set, errorAt, area } = useMembers(nodePath(node.id))
  return (
    <section aria-label={editorText.noteAndPin} className="space-y-3">
      {area('note', 'note', node.note)}
      {node.pin !== undefined && (
        <>
          <JsonField
            label={editorText.pin}
            hint={editorText.pinHint}
            error={errorAt('pin')}
            value={node.pin}
            set={pin => set('pin', pin)}
          />
          {!readOnly && <Button small icon={PinOff} onClick={() => set('pin', undefined)} label={editorText.unpin} />}
        </>
      )}
    </section>
  )
}

/** Keeps the result that a node had in the run, so that it does not run again. */
export function PinResult({ node: { id, pin } }: { node: WorkflowNode }) {
  const { execution, runs } = useEditor()
  const { set } = useMembers(nodePath(id))
  const run = runs.get(id)
  const { mutate, isPending } = useMutation({
    // The list of nodes leaves out parts of results.
    mutationFn: async () =>
      (await dataOf(api.GET('/api/workflow-executions/{id}/nodes/{node}', at({ id: execution!, node: id })))).node,
    onSuccess: ({ result }) => {
      if (JSON.stringify(result).length > maxPinLength) announce('bad', editorText.pinTooLong(id))
      else if (set('pin', result)) announce('good', editorText.isPinned(id))
    },
    onError: ({ message }) => announce('bad', message),
  })
  if (execution === undefined || run?.status !== 'completed' || run.pinned) return null
  return (
    <Button
      small
      icon={Pin}
      busy={isPending}
      onClick={() => mutate()}
      label={pin === undefined ? editorText.pinResult : editorText.pinResultAgain}
    />
  )
}
