import { useCallback, useEffect, useRef, useState } from 'react'
import { placeGraph } from '../../components/graph/use-places.ts'
import { editOfArrangement, framingOf, graphToArrange } from './document/arrange.ts'
import { type Edit, nodePath, setValue, together } from './document/edits.ts'
import { graphOf, placedCards } from './document/graph.ts'
import type { NestedWorkflows } from './document/nested.ts'
import type { TaskFacts } from './document/schema.ts'
import type { Workflow } from './document/workflow-document.ts'

interface ArrangingOptions {
  workflow: Workflow
  tasks: ReadonlyMap<string, TaskFacts>
  nested: NestedWorkflows
  /** Whether cards show results. */
  ran: boolean
  apply: (edit: Edit) => boolean
}

/** Which cards people have unfolded, and the automatic places of the nodes. */
export function useArranging({ workflow, tasks, nested, ran, apply }: ArrangingOptions) {
  const [expanded, setExpanded] = useState<ReadonlySet<string>>(new Set())
  const unfold = useCallback(
    (key: string) => setExpanded(now => new Set(now.has(key) ? [...now].filter(one => one !== key) : [...now, key])),
    [],
  )
  const [arrangements, setArrangements] = useState(0)
  const newest = useRef(workflow)
  useEffect(() => {
    newest.current = workflow
  }, [workflow])
  const arrange = useCallback(async () => {
    const edit =
      workflow.frames.length === 0
        ? together(...workflow.nodes.map(node => setValue([...nodePath(node.id), 'position'], undefined)))
        : await editWithFrames(workflow, () => graphOf(workflow, tasks, expanded, ran, nested))
    // What a person has changed meanwhile stays.
    if (newest.current !== workflow) return
    apply(edit)
    setArrangements(now => now + 1)
  }, [workflow, tasks, expanded, ran, nested, apply])
  return { expanded, unfold, arrange, arrangements }
}

/** Frames have places of their own, so the nodes get some too, and what lies in a frame is placed together. */
async function editWithFrames({ nodes, frames }: Workflow, graph: () => ReturnType<typeof graphOf>): Promise<Edit> {
  const { cards, edges } = graph()
  const isPlaced = nodes.every(({ position }) => position)
  const seen = placedCards(cards, isPlaced ? new Map() : await placeGraph({ boxes: cards, lines: edges }))
  const framing = framingOf(seen, frames)
  return editOfArrangement(seen, framing, await placeGraph(graphToArrange(seen, edges, framing)))
}
