import { Link2 } from 'lucide-react'
import { IconButton } from '../../../components/button.tsx'
import { editorText } from '../../../text/editor.ts'
import { nodePath } from '../document/edits.ts'
import type { WorkflowNode } from '../document/workflow-document.ts'
import { useEditor } from '../editor-context.ts'
import { DraftField, useMembers } from './properties.tsx'
import { YamlField } from './value-field.tsx'

/** The members of a node that have a field here. */
export const itemMembers = ['for_each', 'max_parallel', 'max_items', 'on_item_error'] as const

/** The list for whose items a node runs, and how. `pick` opens the choice of a list. */
export function NodeItems({ node, pick }: { node: WorkflowNode; pick: () => void }) {
  const { readOnly } = useEditor()
  const { set, errorAt, number, choice } = useMembers(nodePath(node.id))
  const { for_each: list, max_parallel, max_items, on_item_error } = node
  const shared = { label: editorText.forEach, hint: editorText.forEachHint, error: errorAt('for_each') }
  const setList = (next: unknown) => set('for_each', next === '' ? undefined : next)
  return (
    <section aria-label={editorText.onceForEach} className="space-y-3">
      <h3 className="font-medium">{editorText.onceForEach}</h3>
      <div className="flex items-start gap-1">
        <div className="min-w-0 flex-1">
          {list === undefined || typeof list === 'string' ? (
            <DraftField {...shared} value={list ?? ''} commit={setList} />
          ) : (
            <YamlField {...shared} value={list} set={setList} />
          )}
        </div>
        {!readOnly && <IconButton icon={Link2} label={editorText.insertList} className="mt-6" onClick={pick} />}
      </div>
      {itemMembers.some(member => node[member] !== undefined) && (
        <>
          {number('maxParallel', 'max_parallel', max_parallel)}
          {number('maxItems', 'max_items', max_items)}
          {choice('onItemError', 'on_item_error', on_item_error ?? 'fail', { fail: undefined })}
        </>
      )}
    </section>
  )
}
