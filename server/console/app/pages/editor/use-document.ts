import { replaceEqualDeep } from '@tanstack/react-query'
import { useCallback, useMemo, useRef, useState } from 'react'
import { useAnnounce } from '../../components/announcements.tsx'
import { editorText } from '../../text/editor.ts'
import { type Edit, EditFault } from './document/edits.ts'
import { changed, openHistory, redone, undone } from './document/history.ts'
import { documentText, type Parsed, parseWorkflow, readDocument } from './document/workflow-document.ts'

/** Owns the text of the edited workflow, its history, and what it says. */
export function useDocument(initial: string) {
  const [history, setHistory] = useState(() => openHistory(initial))
  // Read by several edits of one moment, each of which follows the one before.
  const latest = useRef(history)
  const announce = useAnnounce()
  const text = history.present
  const known = useRef<{ text: string; parsed: Parsed }>(undefined)
  const parsedOf = useCallback((wanted: string): Parsed => {
    if (known.current?.text !== wanted) known.current = { text: wanted, parsed: parseWorkflow(wanted) }
    return known.current.parsed
  }, [])
  const parsed = useMemo(() => parsedOf(text), [parsedOf, text])
  const shown = useRef(parsed.workflow)
  // While a text has faults the graph shows what it said before. Unchanged parts stay the same objects.
  if (parsed.faults.length === 0) shown.current = replaceEqualDeep(shown.current, parsed.workflow)

  const become = useCallback((next: typeof history) => {
    latest.current = next
    setHistory(next)
  }, [])
  const setText = useCallback(
    (next: string, group?: string) => become(changed(latest.current, next, Date.now(), group)),
    [become],
  )
  const apply = useCallback(
    (edit: Edit, group?: string): boolean => {
      const before = latest.current.present
      const { document, faults } = parsedOf(before)
      if (faults[0]) {
        announce('bad', editorText.faulty(faults[0].line))
        return false
      }
      try {
        // Until the edit is complete the document says neither the text before nor the one after.
        known.current = undefined
        edit(document)
        const after = documentText(document, before)
        known.current = { text: after, parsed: readDocument(document, after) }
        setText(after, group)
        return true
      } catch (thrown) {
        if (!(thrown instanceof EditFault)) throw thrown
        announce('bad', thrown.message)
        return false
      }
    },
    [announce, parsedOf, setText],
  )
  return {
    text,
    parsed,
    workflow: shown.current,
    setText,
    apply,
    canUndo: history.past.length > 0,
    canRedo: history.future.length > 0,
    undo: useCallback(() => become(undone(latest.current)), [become]),
    redo: useCallback(() => become(redone(latest.current)), [become]),
    /** Begins again with another text, without a history. */
    reset: useCallback((next: string) => become(openHistory(next)), [become]),
  }
}
