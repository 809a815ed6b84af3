import { dataDirectory } from '../../core/config.ts'
import { openClient } from '../client.ts'
import { ExecutionAnswer, ExecutionPage, executionPath, isOver } from '../executions/execution.ts'
import { findExecution, listPath } from '../executions/find.ts'
import { lengthText } from '../quantities-text.ts'
import { WorkflowPage } from '../workflows/workflow.ts'
import type { Candidate } from './candidates.ts'

/** Somebody waits at a prompt: a server that does not answer in this time has nothing to offer. */
const patienceMs = 700
const newest = 20

/** Which executions a command is for, where it is not for all. */
const fitting: Record<string, (over: boolean) => boolean> = {
  cancel: over => !over,
  watch: over => !over,
  retry: over => over,
  delete: over => over,
}

/** Ids of the workflows that were changed last. Never throws; nothing known is an empty list. */
export async function knownWorkflows(dataDirFlag: string | undefined): Promise<Candidate[]> {
  try {
    const signal = AbortSignal.timeout(patienceMs)
    const path = `/api/workflows?limit=${newest}`
    const client = openClient(dataDirectory(dataDirFlag))
    const { workflows } = await client.ask({ method: 'GET', path, answer: WorkflowPage, signal })
    return workflows.map(({ id, name }) => ({ value: id, description: name }))
  } catch {
    return []
  }
}

/** Ids of the newest executions that the command can do something with. Never throws. */
export async function recentExecutions(dataDirFlag: string | undefined, command = ''): Promise<Candidate[]> {
  try {
    const signal = AbortSignal.timeout(patienceMs)
    const path = listPath({ limit: newest })
    const client = openClient(dataDirectory(dataDirFlag))
    const { executions } = await client.ask({ method: 'GET', path, answer: ExecutionPage, signal })
    return executions
      .filter(({ status }) => fitting[command]?.(isOver(status)) ?? true)
      .map(({ id, status, created_at }) => ({
        value: id,
        description: `${status}, ${lengthText(Date.now() / 1000 - created_at)} ago`,
      }))
  } catch {
    return []
  }
}

/** The nodes of an execution. Never throws. */
export async function nodesOfExecution(dataDirFlag: string | undefined, text: string): Promise<Candidate[]> {
  try {
    const signal = AbortSignal.timeout(patienceMs)
    const client = openClient(dataDirectory(dataDirFlag))
    const path = executionPath(await findExecution(client, text, signal))
    const { execution } = await client.ask({ method: 'GET', path, answer: ExecutionAnswer, signal })
    return (execution.nodes ?? []).map(({ node_id, status, task }) => ({
      value: node_id,
      description: `${status} ${task}`,
    }))
  } catch {
    return []
  }
}
