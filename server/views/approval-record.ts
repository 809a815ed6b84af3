import { z } from 'zod'
import type { Caller } from '../../core/accounts/accounts.ts'
import {
  array,
  boolean,
  integer,
  namedObject,
  nullable,
  nullableInteger,
  nullableString,
  string,
} from '../../core/schemas/fields.ts'
import { Form } from '../../core/schemas/waits.ts'
import type { Wait } from '../../core/store/waits.ts'
import type { StoredApproval } from '../../core/tasks/waits/approval.ts'
import type { Owners } from '../http/request/owners.ts'
import type { UrlReader, Viewer } from './job-record.ts'
import { seconds } from './view-of.ts'

export const ApprovalObject = namedObject(
  'Approval',
  'A question to a person, which a node of an execution waits for.',
  {
    id: string('Id of the approval: that of the job of its node, `job_…`.'),
    object: z.literal('approval'),
    execution_id: string('Id of the execution: `exec_…`.'),
    node_id: string('Id of the node.'),
    item: nullableInteger('Position of its item in the list of a node with `for_each`, from 0; null for others.'),
    workflow_id: nullableString('Id of the workflow; null if it was executed without being stored.'),
    workflow_name: string('Name of the workflow.'),
    title: string('What is asked, in one line.'),
    text: nullableString('What there is to know; null without a text.'),
    images: array('Addresses of the images.', z.string()),
    form: nullable(Form, 'The form to fill in; null if only a decision is asked.'),
    approvers: nullable(
      z.array(z.string()),
      'Tokens and users who may answer; null: every token with the scope `user:write`.',
    ),
    may_answer: boolean('Whether the token of the request may answer.'),
    url: nullableString(
      'The page on which whoever has this address may answer; null if there is none, or the token of the request may not answer.',
    ),
    created_at: integer('Unix seconds at which it was asked.'),
    reminder_at: nullableInteger('Unix seconds of the reminder; null without one, and after it.'),
    timeout_at: nullableInteger('Unix seconds at which the wait ends without an answer.'),
  },
)

/** The address of the page of an approval, or to which an event is sent; null if only callers with a token may end it. */
export function urlOfWait(wait: Wait, { origin }: UrlReader, { waits }: Owners<'waits'>): string | null {
  const token = waits.tokenOf(wait)
  return token === null ? null : `${origin}/${wait.awaits === 'event' ? 'events' : 'approvals'}/${token}`
}

/**
 * The address by which what a job waits for can be ended, for callers who may do so; null without one. `approver`: who the
 * caller is to approvals.
 */
export async function answerUrl(
  { status, jobId }: { status: string; jobId: string | null },
  viewer: Viewer,
  approver: () => ReturnType<typeof approverOf>,
  owners: Owners<'waits'>,
): Promise<string | null> {
  const { caller } = viewer
  if (status !== 'waiting' || jobId === null || !caller.scopes.includes('user:write')) return null
  const wait = await owners.waits.find(caller.organizationId, jobId)
  const mayAnswer = wait?.awaits !== 'approval' || owners.waits.mayAnswer(wait, await approver())
  return wait && mayAnswer ? urlOfWait(wait, viewer, owners) : null
}

/** What is asked, with the addresses of its images. */
export function shownQuestion({ request }: Wait, { origin }: UrlReader, { files }: Owners<'files'>) {
  const { title, text, images = [], form, approvers } = JSON.parse(request) as StoredApproval
  return {
    title,
    text: text ?? null,
    images: images.map((id, at) => files.link({ id, name: `image-${at + 1}` }, origin)),
    form: form ?? null,
    approvers: approvers ?? null,
  }
}

/** Who the caller is among the approvers. */
export async function approverOf({ organizationId, token }: Caller, { organizations }: Owners<'organizations'>) {
  const user = token.userId === null ? undefined : await organizations.users.find(organizationId, token.userId)
  return { tokenName: token.name, email: user?.email ?? null }
}

/** Returns an approval as the caller sees it. */
export function approvalView(
  wait: Wait,
  viewer: Viewer,
  approver: Awaited<ReturnType<typeof approverOf>>,
  owners: Owners<'files' | 'waits'>,
): z.input<typeof ApprovalObject> {
  const { jobId, executionId, nodeId, item, workflowId, workflowName, createdAt, remindAt, dueAt } = wait
  const mayAnswer = viewer.caller.scopes.includes('user:write') && owners.waits.mayAnswer(wait, approver)
  return {
    id: jobId,
    object: 'approval',
    execution_id: executionId,
    node_id: nodeId,
    item,
    workflow_id: workflowId,
    workflow_name: workflowName,
    ...shownQuestion(wait, viewer, owners),
    may_answer: mayAnswer,
    url: mayAnswer ? urlOfWait(wait, viewer, owners) : null,
    created_at: seconds(createdAt),
    reminder_at: seconds(remindAt),
    timeout_at: seconds(dueAt),
  }
}
