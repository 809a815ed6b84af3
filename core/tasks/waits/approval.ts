import { parsed } from '../../schemas/issues.ts'
import { ApprovalRequest, ApprovalResult, type Decision, defaultWaitSeconds } from '../../schemas/waits.ts'
import type { WaitTaskRecord } from '../task.ts'
import { after, waitTask } from './wait-task.ts'

/** What is stored of an approval: its images are ids of files. */
export type StoredApproval = ApprovalRequest

/** Whether whoever has the link may answer. */
export const hasLink = ({ link, approvers }: StoredApproval): boolean => link ?? approvers === undefined

/** The result of a decision; `at` in epoch milliseconds. */
export const approvalResult = (
  { approved, answer, comment }: Decision,
  by: ApprovalResult['by'],
  at: number,
): ApprovalResult => ({ approved, answer: answer ?? null, comment: comment ?? null, by, at: Math.floor(at / 1000) })

/** The record of waiting for a person. */
export const approvalTask: WaitTaskRecord = {
  ...waitTask,
  id: 'wait/approval',
  title: 'approval by a person',
  description: 'Ask a person to approve or to fill in a form, and go on with the answer. Needs no model.',
  sample: { title: 'Publish it?', timeout: 3_600 },
  request: ApprovalRequest,
  result: ApprovalResult,
  takesFiles: true,
  isMediaPath: path => path[0] === 'images' && path.length === 2,
  async fill(inputs, { take }) {
    const request = parsed(ApprovalRequest, inputs)
    if (!request.images) return request
    const images: string[] = []
    for (const [at, image] of request.images.entries()) images.push((await take(`images[${at}]`, image, 'image')).id)
    return { ...request, images } satisfies StoredApproval
  },
  awaits: 'approval',
  timesOf: ({ timeout, reminder }: StoredApproval, now) => ({
    dueAt: after(now, timeout ?? defaultWaitSeconds),
    remindAt: after(now, reminder),
  }),
  resultAtDue: ({ default: given }: StoredApproval, at) =>
    given && approvalResult(given, { type: 'timeout', name: null }, at),
}
