import { Caret } from '../../../components/caret.tsx'
import { loaded } from '../../../components/loaded.tsx'

interface WordsProps {
  text: string
  growing: boolean
  /** Whether it is shown as it is, and not as Markdown. */
  plain: boolean
}

const Markdown = loaded<Omit<WordsProps, 'plain'>>(() => import('../../../components/markdown/markdown.tsx'), null)

/** The text of a message. */
export const Words = ({ text, growing, plain }: WordsProps) =>
  plain ? (
    <p className="break-words whitespace-pre-wrap">
      {text}
      {growing && <Caret />}
    </p>
  ) : (
    <Markdown text={text} growing={growing} />
  )
