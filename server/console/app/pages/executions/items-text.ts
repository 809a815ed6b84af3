import { countText } from '../../components/format.ts'
import { executionsText as text } from '../../text/executions.ts'
import type { ExecutionNode } from './use-execution.ts'

/** How many items of a node have ended, failed, run or wait: `34 of 100 items, 2 failed, 8 running, 3 waiting`. */
export function itemsText({ total, completed, failed, running, waiting }: NonNullable<ExecutionNode['items']>): string {
  const parts = [text.items(countText(completed + failed), countText(total))]
  if (failed > 0) parts.push(text.itemsFailed(countText(failed)))
  if (running > 0) parts.push(text.itemsRunning(countText(running)))
  if (waiting > 0) parts.push(text.itemsWaiting(countText(waiting)))
  return parts.join(', ')
}
