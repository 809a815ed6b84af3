import { ExternalLink } from 'lucide-react'
import { buttonClass, TextLink } from '../../components/button.tsx'
import { countText } from '../../components/format.ts'
import { Notice } from '../../components/page.tsx'
import { executionsText } from '../../text/executions.ts'
import type { Approval } from './use-approvals.ts'

const text = executionsText.approval

/** A question to a person: what is asked, who may answer, and the page to answer it. */
export const ApprovalNotice = ({ approval, className = '' }: { approval: Approval; className?: string }) => (
  <Notice kind="info" className={className}>
    <span className="min-w-0 flex-1 break-words">
      <span className="font-medium">{approval.title}</span> {approval.item !== null && `${text.item(approval.item)} `}
      {mayAnswerText(approval)}
    </span>
    <ApprovalLink approval={approval} />
  </Notice>
)

/** How many open questions are shown at once. */
const most = 5

/** Open questions of an execution, each with the way to its page; of many the newest, and where all of them are. */
export const ApprovalNotices = ({ approvals, className }: { approvals: readonly Approval[]; className?: string }) => (
  <>
    {approvals.slice(0, most).map(approval => (
      <ApprovalNotice key={approval.id} approval={approval} {...(className ? { className } : {})} />
    ))}
    {approvals.length > most && (
      <Notice kind="info" {...(className ? { className } : {})}>
        <TextLink
          href={`/approvals?execution=${approvals[0]!.execution_id}`}
          label={text.more(countText(approvals.length - most))}
        />
      </Notice>
    )}
  </>
)

/** Opens the page of an approval beside this one, which goes on to follow the execution. */
export const ApprovalLink = ({
  approval: { id, may_answer },
  className = '',
}: {
  approval: Pick<Approval, 'id' | 'may_answer'>
  className?: string
}) => (
  <a
    href={`/console/approvals/${id}`}
    target="_blank"
    rel="noreferrer"
    className={`${buttonClass({ small: true })} ${className}`}
  >
    <ExternalLink aria-hidden className="size-4 shrink-0" />
    {may_answer ? text.answer : text.open}
  </a>
)

/** Who may answer, as a sentence. */
export const mayAnswerText = ({ approvers }: Pick<Approval, 'approvers'>): string =>
  approvers ? text.approvers(approvers.join(', ')) : text.everybody
