import { ExecutionAnswer, ExecutionPage, executionPath, isOver } from '../executions/execution.ts'
import { findExecution, listPath } from '../executions/find.ts'
import { lengthText } from '../quantities-text.ts'
import { WorkflowPage } from '../workflows/workflow.ts'
import type { Candidate } from './candidates.ts'
import { fits, known, newest } from './known.ts'

/** Ids of the workflows that were changed last. */
export const knownWorkflows = (dataDirFlag: string | undefined): Promise<Candidate[]> =>
  known(dataDirFlag, async (client, signal) => {
    const path = `/api/workflows?limit=${newest}`
    const { workflows } = await client.ask({ method: 'GET', path, answer: WorkflowPage, signal })
    return workflows.map(({ id, name }) => ({ value: id, description: name }))
  })

/** Ids of the newest executions that the command can do something with. */
export const recentExecutions = (dataDirFlag: string | undefined, command = ''): Promise<Candidate[]> =>
  known(dataDirFlag, async (client, signal) => {
    const path = listPath({ limit: newest })
    const { executions } = await client.ask({ method: 'GET', path, answer: ExecutionPage, signal })
    return executions
      .filter(({ status }) => fits(command, isOver(status)))
      .map(({ id, status, created_at }) => ({
        value: id,
        description: `${status}, ${lengthText(Date.now() / 1000 - created_at)} ago`,
      }))
  })

/** The nodes of an execution. */
export const nodesOfExecution = (dataDirFlag: string | undefined, text: string): Promise<Candidate[]> =>
  known(dataDirFlag, async (client, signal) => {
    const path = executionPath(await findExecution(client, text, signal))
    const { execution } = await client.ask({ method: 'GET', path, answer: ExecutionAnswer, signal })
    return (execution.nodes ?? []).map(({ node_id, status, task }) => ({
      value: node_id,
      description: `${status} ${task}`,
    }))
  })
