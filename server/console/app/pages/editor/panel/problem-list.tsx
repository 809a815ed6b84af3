import { Notice } from '../../../components/page.tsx'
import { editorText } from '../../../text/editor.ts'
import { useEditor, useProblems } from '../editor-context.ts'
import { SeverityBadge } from '../run/run-badge.tsx'

/** Most problems that are listed at once. */
const maxShown = 100

/** All problems; each leads to its node and its line. */
export function ProblemList({ failure, show }: { failure: string | undefined; show: (line: number) => void }) {
  const { reveal } = useEditor()
  const problems = useProblems()
  if (failure) return <Notice kind="warning">{failure}</Notice>
  if (problems.length === 0) return <p>{editorText.noProblems}</p>
  return (
    <ul className="space-y-2">
      {problems.slice(0, maxShown).map(({ message, severity, node, line }, at) => (
        // The same problem can be there twice.
        <li key={at} className="border-line space-y-1 border-b pb-2">
          <p className="break-words">
            <SeverityBadge severity={severity} /> {message}
          </p>
          <p className="flex gap-3 text-xs">
            {node !== undefined && (
              <button type="button" className="text-accent min-h-6 underline" onClick={() => reveal(node)}>
                {editorText.node} {node}
              </button>
            )}
            <button type="button" className="text-accent min-h-6 underline" onClick={() => show(line)}>
              {editorText.line(line)}
            </button>
          </p>
        </li>
      ))}
    </ul>
  )
}
