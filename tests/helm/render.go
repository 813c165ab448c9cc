// Renders a chart as Helm does, with the language and the functions that Helm is made of: Go's
// text/template and sprig. Helm itself is in no registry that the tests may use.
//
//	render CHART < CONTEXT     CONTEXT: JSON with Values, Release and Chart
//
// Writes the rendered templates as one YAML stream, a comment with the name of each before it.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"gopkg.in/yaml.v3"
)

func main() {
	if err := render(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func render(chart string) error {
	// Numbers become float64, as in Helm.
	var context map[string]interface{}
	if err := json.NewDecoder(os.Stdin).Decode(&context); err != nil {
		return err
	}
	all := template.New("").Option("missingkey=zero")
	functions := sprig.TxtFuncMap()
	// Helm removes them: a chart must not read the machine.
	delete(functions, "env")
	delete(functions, "expandenv")
	functions["include"] = func(name string, data interface{}) (string, error) {
		var text strings.Builder
		err := all.ExecuteTemplate(&text, name, data)
		return text.String(), err
	}
	functions["toYaml"] = func(value interface{}) (string, error) {
		text, err := yaml.Marshal(value)
		return strings.TrimSuffix(string(text), "\n"), err
	}
	functions["required"] = func(problem string, value interface{}) (interface{}, error) {
		if value == nil || value == "" {
			return value, fmt.Errorf("%s", problem)
		}
		return value, nil
	}
	all.Funcs(functions)

	files, err := filepath.Glob(filepath.Join(chart, "templates", "*"))
	if err != nil {
		return err
	}
	sort.Strings(files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if _, err := all.New(filepath.Base(file)).Parse(string(text)); err != nil {
			return err
		}
	}
	for _, file := range files {
		name := filepath.Base(file)
		if strings.HasPrefix(name, "_") {
			continue
		}
		var text strings.Builder
		if err := all.ExecuteTemplate(&text, name, context); err != nil {
			return err
		}
		if strings.HasSuffix(name, ".txt") {
			fmt.Fprintln(os.Stderr, text.String())
			continue
		}
		fmt.Printf("---\n# %s\n%s\n", name, text.String())
	}
	return nil
}
