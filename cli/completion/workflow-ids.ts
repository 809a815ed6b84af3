import { ExecutionAnswer, ExecutionPage, executionPath, isOver } from '../executions/execution.ts'
import { findExecution, listPath } from '../executions/find.ts'
import { lengthText } from '../terminal/quantities-text.ts'
import { WorkflowPage } from '../workflows/workflow.ts'
import { askServer, isApplicable, maxOffered } from './ask-server.ts'
import type { CompletionCandidate } from './candidates.ts'

/** Returns ids of the workflows that were changed last. */
export const knownWorkflows = (dataDirFlag: string | undefined): Promise<CompletionCandidate[]> =>
  askServer(dataDirFlag, async (client, signal) => {
    const path = `/api/workflows?limit=${maxOffered}`
    const { workflows } = await client.ask({ method: 'GET', path, answer: WorkflowPage, signal })
    return workflows.map(({ id, name }) => ({ value: id, description: name }))
  })

/** Returns ids of the newest executions that the command applies to. */
export const recentExecutions = (dataDirFlag: string | undefined, command = ''): Promise<CompletionCandidate[]> =>
  askServer(dataDirFlag, async (client, signal) => {
    const path = listPath({ limit: maxOffered })
    const { executions } = await client.ask({ method: 'GET', path, answer: ExecutionPage, signal })
    return executions
      .filter(({ status }) => isApplicable(command, isOver(status)))
      .map(({ id, status, created_at }) => ({
        value: id,
        description: `${status}, ${lengthText(Date.now() / 1000 - created_at)} ago`,
      }))
  })

/** Returns the nodes of an execution. */
export const nodesOfExecution = (dataDirFlag: string | undefined, text: string): Promise<CompletionCandidate[]> =>
  askServer(dataDirFlag, async (client, signal) => {
    const path = executionPath(await findExecution(client, text, signal))
    const { execution } = await client.ask({ method: 'GET', path, answer: ExecutionAnswer, signal })
    return (execution.nodes ?? []).map(({ node_id, status, task }) => ({
      value: node_id,
      description: `${status} ${task}`,
    }))
  })
