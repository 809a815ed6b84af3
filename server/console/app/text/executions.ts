import { named } from './named.ts'

/** Texts of the page Executions. */
export const executionsText = {
  ...named('openWorkflows', 'any', 'allWorkflows'),
  about: 'Runs of workflows: what ran, what it made, and where it failed.',
  none: 'No executions yet',
  noneHelp: 'Run a workflow, or write one.',
  noMatch: 'No execution matches this filter',
  filterStatus: 'State',
  filterWorkflow: 'Of the workflow',
  statuses: ['pending', 'running', 'completed', 'failed', 'cancelled', 'timed_out'],
  columns: {
    ...named('node', 'execution', 'workflow', 'nodes', 'started', 'duration', 'cost'),
    status: 'State',
  },
  unsaved: 'Not stored',
  nodesOf: (done: number, all: number) => `${done} of ${all}`,
  progress: ({ total, completed, failed, running }: Record<'total' | 'completed' | 'failed' | 'running', number>) =>
    [`${completed} of ${total} nodes completed`, running > 0 && `${running} running`, failed > 0 && `${failed} failed`]
      .filter(Boolean)
      .join(', '),
  older: 'Older executions',
  newest: 'Newest executions',
  back: 'All executions',
  gone: 'This execution does not exist or is no longer kept.',
  version: (version: number) => `Version ${version}`,
  views: { label: 'Views of the execution', graph: 'Graph', time: 'Time line', list: 'Nodes', inputs: 'Parameters' },
  graphLabel: 'Nodes of the execution and the values between them',
  nodeLabel: (id: string, status: string) => `Node ${id}: ${status}`,
  failedAt: (node: string) => `Failed at the node ${node}`,
  showNode: (id: string) => `Show node ${id}`,
  timeline: 'When each node ran',
  bar: (id: string, from: string, duration: string) => `${id}: began after ${from}, ran ${duration}`,
  notStarted: 'Has not begun',
  cached: 'Result taken from equal work before',
  skipReasons: {
    condition: 'Its condition was false, so it was skipped',
    skipped_node: 'A node before it was skipped, so it was skipped too',
    failure: 'Another node has failed, so it was skipped',
  },
  cachedShort: 'Reused',
  node: {
    ...named('task', 'model', 'attempts', 'duration', 'inputs', 'result'),
    title: (id: string) => `Node ${id}`,
    openJob: 'Open the job with its log',
    noInputs: 'The inputs are known once the node has begun.',
    noResult: 'There is no result yet.',
    retryFrom: 'Run again from this node',
  },
  retryFailed: 'Run failed nodes again',
  retryAll: 'Run again',
  retried: 'A new execution has begun.',
  cancel: 'Cancel execution',
  cancelled: 'The execution is cancelled.',
  warnings: 'Completed with failed nodes',
  noParameters: 'The execution has no parameters.',
} as const
