import { PageHeading } from '../../components/page-heading.tsx'
import { shellText } from '../../text/shell.ts'

export default function Playground() {
  return <PageHeading title={shellText.pages.playground} />
}
