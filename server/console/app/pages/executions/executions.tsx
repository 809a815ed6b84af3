import { PageHeading } from '../../components/page-heading.tsx'
import { shellText } from '../../text/shell.ts'

export default function Executions() {
  return <PageHeading title={shellText.pages.executions} />
}
