import type { ReactNode } from 'react'
import { api, at, type Schema, useAnswer } from '../../../api/client.ts'
import { TextDifference } from '../../../components/difference/text-difference.tsx'
import { ValueDifferenceList } from '../../../components/difference/value-difference-list.tsx'
import { Queried } from '../../../components/page.tsx'
import { comparisonText as text } from '../../../text/comparison.ts'
import type { ComparedNode } from './comparison.ts'

/** Error, inputs and result of a node in two executions, as far as they differ. Each node is read whole, however long. */
export function NodeDifference({ ids: [a, b], node }: { ids: readonly [string, string]; node: ComparedNode }) {
  const first = useNode(a, node.node_id, node.first?.status)
  const second = useNode(b, node.node_id, node.second?.status)
  return (
    <Queried query={first}>
      {({ node: one }) => (
        <Queried query={second}>
          {({ node: other }) => (
            <div className="space-y-4">
              {(one?.error ?? other?.error) && (
                <Part title={text.error}>
                  <TextDifference
                    label={text.error}
                    before={one?.error?.message ?? ''}
                    after={other?.error?.message ?? ''}
                  />
                </Part>
              )}
              <Part title={text.inputs}>
                <Values before={one?.resolved_inputs} after={other?.resolved_inputs} />
              </Part>
              <Part title={text.result}>
                <Values before={one?.result} after={other?.result} />
              </Part>
            </div>
          )}
        </Queried>
      )}
    </Queried>
  )
}

/** Reads a node again when its state changes; nothing of an execution that has none. */
const useNode = (id: string, node: string, status: string | undefined) =>
  useAnswer<{ node?: Schema<'ExecutionNode'> }>(['executions', 'node', id, node, status], () =>
    status === undefined
      ? Promise.resolve({ data: {} })
      : api.GET('/api/workflow-executions/{id}/nodes/{node}', at({ id, node })),
  )

const Part = ({ title, children }: { title: string; children: ReactNode }) => (
  <section aria-label={title}>
    <h3 className="mb-1 font-medium">{title}</h3>
    {children}
  </section>
)

const Values = ({ before, after }: { before: unknown; after: unknown }) => (
  <ValueDifferenceList
    before={before ?? undefined}
    after={after ?? undefined}
    same={(before ?? undefined) === undefined ? text.noValue : text.sameValue}
  />
)
