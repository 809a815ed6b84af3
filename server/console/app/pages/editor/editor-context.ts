import { createContext, useContext } from 'react'
import type { Schema } from '../../api/client.ts'
import type { Approval } from '../executions/use-approvals.ts'
import type { Problem } from './document/diagnostics.ts'
import type { Edit } from './document/edits.ts'
import type { NestedWorkflows } from './document/nested.ts'
import type { TaskFacts } from './document/schema.ts'
import type { Part } from './document/selection.ts'
import type { Workflow } from './document/workflow-document.ts'
import type { Adding } from './drawer.tsx'

/** What the parts of the editor share. */
interface EditorFacts {
  workflow: Workflow
  /** The same as the server gets it; undefined while the text has faults. */
  value: Readonly<Record<string, unknown>> | undefined
  tasks: ReadonlyMap<string, TaskFacts>
  /** What the nodes that run workflows run. */
  nested: NestedWorkflows
  /**
   * Changes the document, and returns whether it could: not while its text has a fault. Changes of the same group that
   * follow each other closely are one step of undo.
   */
  apply: (edit: Edit, group?: string) => boolean
  readOnly: boolean
  /** Opens the drawer of nodes, for one at a place of the graph if that is given. */
  addNode: (adding?: Adding) => void
  /** Id of the selected node. */
  selected: string | undefined
  select: (id: string | undefined) => void
  /**
   * Selects a node, or none, and moves the focus to its properties or those of the workflow: for links, from where they may
   * be out of sight, and for buttons that disappear with the properties they are in.
   */
  reveal: (id: string | undefined) => void
  /** Id of the execution that was run from here. */
  execution: string | undefined
  /** States of its nodes. */
  runs: ReadonlyMap<string, Schema<'ExecutionNode'>>
  /** The questions to people that are open in it, by node. */
  approvals: ReadonlyMap<string, Approval>
  /** Opens the dialog that runs a part of the workflow. */
  runPart: (part: Part) => void
  /** The ports that a person has unfolded, by their card. */
  expanded: ReadonlySet<string>
  /** Unfolds ports, or folds them. */
  unfold: (key: string) => void
  /** Places all nodes automatically, with the frames around them, and shows the whole graph. */
  arrange: () => Promise<void>
  /** How often that was done. */
  arrangements: number
}

export const EditorContext = createContext<EditorFacts | undefined>(undefined)

/** What cards and lines need: apart, because there are hundreds, and little of the rest is about them. */
type CardFacts = Pick<EditorFacts, 'tasks' | 'runs' | 'approvals'>
export const CardsContext = createContext<CardFacts | undefined>(undefined)

/** The problems of the workflow: apart, because they change after each edit, and most parts show none. */
export const ProblemsContext = createContext<readonly Problem[]>([])
export const useProblems = (): readonly Problem[] => useContext(ProblemsContext)

const given = <Facts>(facts: Facts | undefined): Facts => {
  if (!facts) throw new Error('This is only for parts of the editor.')
  return facts
}
export const useEditor = (): EditorFacts => given(useContext(EditorContext))
export const useCards = (): CardFacts => given(useContext(CardsContext))
