import { named } from './named.ts'

/** Texts of the page Approvals. */
export const approvalsText = {
  ...named('approve', 'reject', 'comment', 'question', 'workflow', 'node', 'asked', 'until', 'approvers', 'execution'),
  about: 'What workflows ask people. They wait until somebody answers.',
  none: 'Nothing waits for an answer',
  noneHelp: 'A workflow asks with a node wait/approval. The guide "workflow-approvals" shows how.',
  older: 'Older approvals',
  newest: 'Newest approvals',
  back: 'All approvals',
  gone: 'This question is no longer open: it was answered, or its time is over.',
  image: (at: number) => `Image ${at + 1}`,
  notYours: 'The workflow names who may answer, and your token is not among them.',
  approved: 'Approved. The workflow goes on.',
  rejected: 'Rejected. The workflow goes on.',
  nodeOf: (node: string, item: number | null) => (item === null ? node : `${node}, item ${item}`),
  context: 'What led to it',
  startedBy: 'Started by the token',
  ...named('started', 'inputs'),
  parameters: 'Parameters of the execution',
  nothingBefore: 'No node ran before it.',
  before: (node: string) => `Node before: ${node}`,
  moreBefore: (left: number) => (left === 1 ? 'Show 1 more node' : `Show more of ${left} nodes`),
  noResult: 'No result is kept.',
  job: 'Open job',
  page: 'Page without sign-in',
  columns: named('question', 'workflow', 'node', 'asked', 'until'),
} as const
