import { TextLink } from '../../../components/button.tsx'
import { editorText } from '../../../text/editor.ts'
import { ApprovalLink, ApprovalNotice, mayAnswerText } from '../../executions/approval-notice.tsx'
import type { ExecutionNode } from '../../executions/use-execution.ts'
import { useCards, useEditor } from '../editor-context.ts'

/** What a node of the run waits for: the question to a person, or the execution that it has started. */
export function NodeWait({ node: { node_id, child_execution_id } }: { node: ExecutionNode }) {
  const approval = useEditor().approvals.get(node_id)
  return (
    <>
      {approval && <ApprovalNotice approval={approval} />}
      {child_execution_id !== null && (
        <TextLink
          href={`/executions/${child_execution_id}`}
          className="inline-block px-3 pb-2 text-xs underline"
          label={editorText.openChild}
        />
      )}
    </>
  )
}

/** The same on the card of the node. */
export function CardWait({ id }: { id: string }) {
  const approval = useCards().approvals.get(id)
  if (!approval) return null
  return (
    <div className="border-line space-y-2 border-t p-2">
      <p className="line-clamp-3 break-words">{mayAnswerText(approval)}</p>
      <ApprovalLink approval={approval} className="nodrag" />
    </div>
  )
}
