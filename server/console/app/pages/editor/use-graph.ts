import { useDeferredValue, useMemo } from 'react'
import { usePlaces } from '../../components/graph/use-places.ts'
import { detoursOf, graphOf, placedCards } from './document/graph.ts'
import { useEditor } from './editor-context.ts'

const noCards: never[] = []
/** Above this number of nodes only what is in view is drawn. */
const manyNodes = 60

/** The cards and edges of the workflow with their places. */
export function useGraph() {
  const { workflow: newest, tasks, nested, runs, expanded, unfold } = useEditor()
  // What a person types in is drawn first.
  const workflow = useDeferredValue(newest)
  const ran = runs.size > 0
  const { cards, edges } = useMemo(
    () => graphOf(workflow, tasks, expanded, ran, nested),
    [workflow, tasks, expanded, ran, nested],
  )
  const arranged = workflow.nodes.some(({ position }) => !position)
  const places = usePlaces(arranged ? cards : noCards, edges)
  const placed = useMemo(() => placedCards(cards, places), [cards, places])
  const detours = useMemo(() => detoursOf(placed, edges), [placed, edges])
  return {
    cards: placed,
    edges,
    detours,
    expanded,
    unfold,
    arranged,
    isEmpty: cards.length === 0,
    many: cards.length > manyNodes,
  }
}
export type Graph = ReturnType<typeof useGraph>
